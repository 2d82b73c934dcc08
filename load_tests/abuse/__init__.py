"""What well-behaved clients notice of an attack: `python -m load_tests.abuse`."""
