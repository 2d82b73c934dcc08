"""Who answers for an artifact: a compile replica, and a model replica's source, each key once at a time."""
