"""Regexes and regular sets of strings: parsed by an allow-list, intersected, complemented, rendered again."""
