"""Automata of regexes, with the conditions that look-around sets."""
