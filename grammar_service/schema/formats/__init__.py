"""The formats of JSON Schema 2020-12 as patterns."""
