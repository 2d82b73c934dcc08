"""Forced tokens on their way from the scheduler to the model: what has been decided and not been computed yet."""
