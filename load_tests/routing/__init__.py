"""Routing on real engines: `python -m load_tests.routing`, `.faults` and `.overhead`."""
