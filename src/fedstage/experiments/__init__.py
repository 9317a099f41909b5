"""Experiments of config.yaml and of experiment files, and their runs.

The Snakefile imports all of it, so it needs neither torch nor pandas.
"""
