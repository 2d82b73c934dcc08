"""Models of random weights whose tokenizers are of the kinds that models have: each keeps to its constraints, and its calls are read."""
