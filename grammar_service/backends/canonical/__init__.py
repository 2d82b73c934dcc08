"""Any backend's grammars, kept to the sequences that the tokenizer itself makes."""
