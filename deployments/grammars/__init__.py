"""The ingress's side of grammars: which are ready, how the compile pool is reached, which have names."""
