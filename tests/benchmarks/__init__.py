"""Measurements, not collected by pytest: ``uv run python -m tests.benchmarks.NAME``."""
