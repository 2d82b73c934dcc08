"""Regexes and choices as automata of our own, whose masks are there before they are asked for."""
