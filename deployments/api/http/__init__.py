"""HTTP in front of the gateway: a server, its paths, and what answers at each."""
