"""Measured seconds of the jobs of a round."""
