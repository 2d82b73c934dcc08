"""What tenants notice of each other: `python -m load_tests.tenants`."""
