"""From the forms in which clients ask for a constraint to one `GrammarSpec`."""
