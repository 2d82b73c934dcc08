"""The backend `automata` beside the two libraries, on what all three enforce."""
