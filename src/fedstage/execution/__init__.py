"""The command line, and the processes that run stages.

Snakemake runs jobs by an executor plugin, in warm workers that have torch and the data already:

    executor     what Snakemake calls: which jobs run in workers, and which need not run at all
    pool         the workers of a snakemake process, and where each of them runs
    fork_server  the process that has imported everything, and whose forks are the workers

Without the plugin, each job is a process of its own: `fedstage.execution.cli`.
"""
