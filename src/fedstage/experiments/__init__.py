"""Experiments of config.yaml and of experiment files, and their runs.

The Snakefile imports the whole package, so it must not need torch or pandas.
"""
