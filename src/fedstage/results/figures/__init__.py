"""Figures of results: accuracy over rounds, partitions, comparisons and sweeps."""
