"""The one form of a schema that backends are handed, and which parts of it may be narrowed."""
