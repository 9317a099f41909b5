"""Published numbers, and their places among an experiment's cells.

The Snakefile reads them when it is parsed, so only standard library and settings here.
"""
