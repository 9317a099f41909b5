"""Results at hand: the results of a run as frames, models and scores, in Python.

All functions take a target, such as ``quickstart`` or ``fedsdd_table2/mini``, and the working
folder. They read its runs file, so they need neither Snakemake nor the configuration.
"""
