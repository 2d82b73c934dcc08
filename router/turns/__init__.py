"""Turns among tenants: whose request is next, by what each has used; pure."""
