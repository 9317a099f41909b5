"""Experiments: settings of config.yaml and of experiment files, and the runs that they stand for.

The Snakefile reads all of it when it is parsed, so only standard library and settings here.
"""
