"""What the engine's steps leave to the tenants of it; pure."""
