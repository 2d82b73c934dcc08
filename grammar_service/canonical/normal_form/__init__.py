"""Unicode's form NFC, which some tokenizers bring texts into first: no other text has canonical tokens."""
