"""fedstage: federated-learning research as a DAG of cached stages.

snakemake --cores all                                     what config.yaml names as targets
snakemake --cores all results/tables/EXPERIMENT/SCALE.md  any experiment of workflow/experiments
"""

from snakemake.utils import min_version

min_version("9.0")


configfile: "config.yaml"


# Built from envs/Containerfile; used only with --software-deployment-method apptainer.
container: "envs/fedstage.sif"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/inputs.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/lines.smk"
include: "workflow/rules/logits.smk"


if GRANULARITY == "participant":

    if CLIENTS_PER_JOB == 1:

        include: "workflow/rules/local_training.smk"

    else:

        include: "workflow/rules/cohorts.smk"
    include: "workflow/rules/rounds.smk"
    include: "workflow/rules/distillation.smk"

else:

    include: "workflow/rules/segments.smk"


include: "workflow/rules/local_models.smk"
include: "workflow/rules/one_shot.smk"
include: "workflow/rules/evaluation.smk"
include: "workflow/rules/choices.smk"
include: "workflow/rules/results.smk"
include: "workflow/rules/communication.smk"
include: "workflow/rules/computed.smk"
include: "workflow/rules/forgetting.smk"


# The metrics are named beside the tables made of them, so that deleting one makes it again.
rule all:
    default_target: True
    input:
        [metrics_of(run) for target in CATALOGUE.config.targets for run in runs_of(target)],
        [results_of(target) for target in CATALOGUE.config.targets],
    localrule: True
    message:
        "all targets are made"


onstart:
    lift_rate_limit()
    hide_reasons()
    show_size()


onsuccess:
    show_tables()
