"""The command line, and the processes that run stages.

Stage commands run in warm workers, which have torch and the data already:

    client       what a rule's command starts: standard library only, 25 ms instead of 3 s
    pool         the process that has imported everything, and hands commands to workers
    supervision  forks the workers, watches them and ends them
    worker       runs one stage after the other, as `fedstage.execution.cli` would

A pool belongs to one snakemake process, ends with it, and serves one version of the source.
"""
