"""Which token sequences a tokenizer itself would make: its merges and its pre-tokenizer as an automaton over tokens."""
