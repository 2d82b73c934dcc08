"""How long the first answer to a schema takes that nobody has asked for."""
