"""Structural tags: free text, tags and sequences around other constraints."""
