"""The tokenizer as grammars see it: token bytes, fingerprint, and the encoding of text inside text."""
