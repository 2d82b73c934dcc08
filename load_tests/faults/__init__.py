"""Processes of a cluster die under load: `python -m load_tests.faults`. Its nodes are all on this machine."""
