"""round_times."""
