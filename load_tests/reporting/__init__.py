"""What benchmarks share: a service to measure, and the tables in the documentation."""
