"""Real nodes for tests: a context manager and a pytest fixture."""
