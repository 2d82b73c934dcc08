"""Regular languages as automata over bytes and over tokens. Pure: no tokenizer is asked, nothing is read or written."""
