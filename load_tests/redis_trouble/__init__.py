"""How long requests wait when Redis is in trouble: `python -m load_tests.redis_trouble`."""
