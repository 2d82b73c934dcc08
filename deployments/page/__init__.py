"""The page at `/`, on which a browser tries constraints."""
