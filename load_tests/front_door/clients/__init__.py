"""The clients, in a process of their own."""
