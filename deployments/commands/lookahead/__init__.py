"""`maskcast lookahead`: what look-aheads satisfy and cost on texts of one's own."""
