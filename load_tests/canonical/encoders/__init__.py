"""Tokenizers that the automaton is held against."""
