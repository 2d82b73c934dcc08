"""Tokens of a vocabulary by what they write, and what is taken out of masks of them."""
