"""What the service tells of itself: metrics by name, and one page of them for the whole cluster."""
