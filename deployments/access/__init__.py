"""Who may call, what for, and how much: keys, scopes, limits."""
