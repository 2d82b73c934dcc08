"""Where a pre-tokenizer cuts a text, as an automaton that reads it once from left to right."""
