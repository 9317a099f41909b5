"""aggregation."""
