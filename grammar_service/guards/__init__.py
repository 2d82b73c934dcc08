"""Followers of a JSON text beside its grammar: they know what no grammar can, such as the names that an object has already."""
