"""How many schemas each mechanism of the schema rooms serves."""
