"""One engine step's masks as bytes, and how they meet the logits."""
