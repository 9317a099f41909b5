"""one_shot."""
