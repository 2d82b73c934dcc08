"""What can be measured of the GPU path with torch and Triton alone, on a machine without vLLM and without a network."""
