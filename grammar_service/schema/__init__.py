"""JSON Schema: read with care, checked, brought into the one form that backends are handed."""
