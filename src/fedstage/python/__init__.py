"""From Python: a study of one's own model and data, written as a project and run by Snakemake.

`fedstage.run` is a front of the workflow: what it writes is what a user would write by hand.
"""
