"""The grammars that benchmarks run on, and what made them."""
