"""The grammar service against the bare libraries: `python -m load_tests.grammar`."""
