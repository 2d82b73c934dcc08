"""What masks cost: `python -m load_tests.masks.path`."""
