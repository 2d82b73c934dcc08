"""The allow-list of request fields: the type and the bound of each, what it needs, and whether the engine gets it."""
