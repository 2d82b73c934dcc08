"""Which replica serves which request: pure policy, the same in every router process, without Ray."""
