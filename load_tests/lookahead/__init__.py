"""Look-ahead decoding: the paper's own figures, and an experiment with models of a minute's training."""
