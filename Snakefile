"""fedstage: federated-learning research as a DAG of cached stages.

uv run snakemake --cores all                                     what config.yaml names as targets
uv run snakemake --cores all EXPERIMENT/SCALE                    any experiment
uv run snakemake --cores all results/tables/EXPERIMENT/SCALE.md  or one of its files
"""

import sys
from pathlib import Path

from snakemake.utils import min_version

from fedstage.execution.faults import explained
from fedstage.storage.yaml_files import load_yaml

min_version("9.0")

# Snakemake does not say where in it a fault is.
if Path("config.yaml").is_file():
    explained(load_yaml, Path("config.yaml"))
elif Path.cwd() == Path(workflow.current_basedir, "workflow").resolve():
    sys.exit("fedstage: workflow/ has no config.yaml; run snakemake in the folder above")


configfile: "config.yaml"


# Built from envs/Containerfile; used only with --software-deployment-method apptainer.
container: "envs/fedstage.sif"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/session.smk"
include: "workflow/rules/data.smk"
include: f"workflow/rules/{'rounds' if BY_PARTICIPANT else 'segments'}.smk"
include: "workflow/rules/one_shot.smk"
include: "workflow/rules/evaluation.smk"
include: "workflow/rules/results.smk"


rule all:
    default_target: True
    input:
        [files_of_target(target) for target in CATALOGUE.config.targets],
    localrule: True
    message:
        "all targets are made"


for target in filterfalse(workflow.is_rule, NAMED):

    rule:
        name:
            target
        input:
            files_of_target(target),
        localrule: True


onstart:
    check_raw_data()
    # Snakemake's messages on failed jobs are left out, as `tell_faults` explains them.
    logger.info(f"{len(workflow.dag)} jobs to do", extra={"explains_failures": True})


onsuccess:
    explained(link_runs, CATALOGUE, linked(shown_results(CATALOGUE, wanted())), Path())
    atexit.register(print, *tables(), sep="\n", end="", file=sys.stderr)


onerror:
    tell_faults()
