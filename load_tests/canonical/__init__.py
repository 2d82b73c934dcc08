"""What canonical output promises, checked against tokenizers' own encoders, and what it costs."""
