"""What a request may be and ask for, judged before anything is computed for it."""
