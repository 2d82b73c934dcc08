"""The one form of every result: what ran, where, which targets hold, and the raw rows."""
