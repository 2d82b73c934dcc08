"""What the paper printed: its calls and speed-ups, and which of its readings they fit."""
