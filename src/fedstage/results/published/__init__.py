"""Published numbers, and their places among an experiment's cells.

The Snakefile reads them when it is parsed, so only the standard library and settings are used.
"""
