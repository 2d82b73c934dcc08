"""Tokenizers whose encoders the automaton is compared with."""
