"""Families of schemas as people write them."""
