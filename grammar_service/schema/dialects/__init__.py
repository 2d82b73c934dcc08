"""Schemas of any dialect, read as the one dialect that all other rooms know, draft 2020-12, with places in the user's own text.

A dialect is chosen by `$schema`; without it, 2020-12 holds, and forms that only older drafts or OpenAPI 3.0 have are read as those.
"""
