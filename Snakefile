"""fedstage: federated-learning research as a DAG of cached stages.

uv run snakemake --cores all                                     what config.yaml names as targets
uv run snakemake --cores all EXPERIMENT/SCALE                    any experiment
uv run snakemake --cores all results/tables/EXPERIMENT/SCALE.md  or one of its files
"""

import sys
from pathlib import Path

from snakemake.utils import min_version

from fedstage.execution.faults import expect_interrupts, explained
from fedstage.storage.yaml_files import load_yaml

min_version("9.0")
expect_interrupts()

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
include: "workflow/rules/stages.smk"
include: "workflow/rules/recipes.smk"


if not BY_PARTICIPANT:

    include: "workflow/rules/segments.smk"


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
    note_process()
    lift_rate_limit(workflow.scheduler)
    stop_in_a_thread(workflow.scheduler)
    stop_at_bad_data(workflow.scheduler)
    stop_without_data()
    show_size()


onsuccess:
    link_by_method()
    show_tables()


onerror:
    tell_faults()
