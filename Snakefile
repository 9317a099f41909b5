"""fedstage: federated-learning research as a DAG of cached stages.

uv run snakemake --cores all                                     what config.yaml names as targets
uv run snakemake --cores all EXPERIMENT/SCALE                    any experiment
uv run snakemake --cores all results/tables/EXPERIMENT/SCALE.md  or one of its files
"""


include: "workflow/Snakefile"


# Snakemake does not take the default target of a file that is included.
workflow.default_target = "all"
