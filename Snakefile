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
expect_interrupts(workflow.output_settings.dryrun)

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
    # Calls that find the folder locked see until the end that this process works here.
    for log in workflow.logger_manager.get_logfile():
        note = note_run(Path(log).absolute(), own_locks(workflow))
        atexit.register(note.unlink, missing_ok=True)
    lift_rate_limit(workflow.scheduler)
    stop_in_a_thread(workflow.scheduler)
    stop_at_bad_data(workflow.scheduler)
    if line := missing():
        sys.exit(f"fedstage: {line}")
    # What is printed at the end is up to `session.smk`.
    names = names_of_folders(chain.from_iterable(CATALOGUE.runs.values()))
    text = describe_size(CATALOGUE, shown_runs(CATALOGUE, wanted()))
    interrupted = partial(was_interrupted, workflow.scheduler, CTRL_C)
    explains = {
        "explains_failures": True,
        "names_of_runs": names,
        "is_interrupted": interrupted,
    }
    logger.info(text, extra=explains)


onsuccess:
    explained(link_runs, CATALOGUE, linked(shown_results(CATALOGUE, wanted())), Path())
    atexit.register(print, *tables(), sep="\n", end="", file=sys.stderr)


onerror:
    tell_faults()
