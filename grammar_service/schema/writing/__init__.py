"""From sets of values to a schema in the keywords that backends enforce."""
