"""Published numbers: reading them, and finding those that belong to an experiment's cells.

The Snakefile does both when it is parsed, so only standard library and settings here.
"""
