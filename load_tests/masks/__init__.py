"""What masks weigh and cost: `python -m load_tests.masks.sizes`, `.path` and `.engines`."""
