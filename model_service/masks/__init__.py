"""Masks of one engine step on their way from who fills them to the workers: frames, and the ring that carries them."""
