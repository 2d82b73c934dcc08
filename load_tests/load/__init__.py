"""Mixed traffic at the HTTP port, with open arrivals: `python -m load_tests.load`."""
