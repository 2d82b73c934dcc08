"""From the keywords of a schema to sets of values."""
