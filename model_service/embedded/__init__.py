"""A model of 2.6 million parameters that comes with the repository, and all that made it; and a real one that comes as a package."""
