"""Each file is made by one rule, which reads and makes what the graph says, by the same names."""

import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.api import OutputSettings, ResourceSettings, SnakemakeApi, WorkflowSettings
from snakemake.io import is_flagged
from snakemake_interface_executor_plugins.settings import ExecMode
from tests.shared.experiments import OF_ALL_STAGES

from fedstage.execution.jobs import job_of
from fedstage.experiments.catalogue import metrics_of
from fedstage.experiments.targets import describe, describe_choice
from fedstage.plan.graph import behind, listed, never, recipe_file
from fedstage.plan.results import FORMATS, FURTHER, choice_file, description_file, result_files
from fedstage.plan.runs import split_target
from fedstage.plan.source import Source, source_of_job
from fedstage.plan.stages import CHOICE, FIGURES, GRAPH, RESULTS, TABLES
from fedstage.storage.planned import write_json, write_recipe

REPOSITORY = Path(__file__).parents[3]
#: An experiment, at a scale, with all results.
SCALE = ("fedsdd_table5", "smoke")


@pytest.fixture(scope="module")
def workflow(tmp_path_factory):
    """The workflow as a job sees it that belongs to a call with these targets."""
    folder = tmp_path_factory.mktemp("rules")
    (folder / "config.yaml").write_bytes((REPOSITORY / "config.yaml").read_bytes())
    how = WorkflowSettings(exec_mode=ExecMode.SUBPROCESS)
    with pytest.MonkeyPatch.context() as patch, SnakemakeApi(OutputSettings()) as api:
        patch.setattr("fedstage.execution.executor.plan_faster", lambda graph: None)
        patch.setenv("FEDSTAGE_ARGUMENTS", shlex.join(OF_ALL_STAGES))
        for name in ("PATH", "FEDSTAGE_CLIENTS_PER_GPU"):
            patch.setenv(name, "1")  # so that they are as before afterwards
        patch.chdir(folder)
        yield api.workflow(
            ResourceSettings(cores=1), workflow_settings=how, snakefile=REPOSITORY / "Snakefile"
        )._workflow


def rule_of(workflow, file):
    """The only rule that makes a file, and the wildcards by which it does."""
    (rule,) = (rule for rule in workflow.rules if rule.is_producer(file))
    return rule, rule.get_wildcards(file)


def lists(files):
    return {name: [*listed(paths)] for name, paths in files.items() if paths}


def work_of(rule, wildcards):
    """The job that the command of a rule names."""
    read = rule.expand_input(wildcards)[0]
    command = rule.shellcmd.format(input=read, wildcards=SimpleNamespace(**wildcards))
    _, _, stage, file, *words = shlex.split(command)
    return job_of(stage, Path(file), words)


def agree(rule, wildcards, work, planned):
    """Assert that a rule reads and makes what its command does, and files of the plan."""
    read = lists(rule.expand_input(wildcards)[0])
    assert lists(work.inputs) | lists(planned) == read
    assert lists(rule.expand_output(wildcards)[0]) == lists(work.outputs)
    assert rule.expand_log(wildcards) == [work.record]


def test_the_rules_are_the_graph(workflow, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    catalogue = workflow.globals["CATALOGUE"]
    runs = (run for target in OF_ALL_STAGES for run in catalogue.runs[split_target(target)])
    jobs = behind(metrics_of(one) for run in runs for one in run.evaluated())
    looked = set()
    for job in jobs:
        (rule, wildcards), *others = (rule_of(workflow, file) for file in job.files.values())
        assert all(found == rule for found, _ in others)
        assert rule.name.startswith(job.stage.name)
        kind = (job.stage, *job.files, *lists(job.inputs))
        if kind in looked:
            continue
        looked.add(kind)
        write_recipe(recipe_file(job.folder), job.config)
        work = work_of(rule, wildcards)
        assert (work.inputs, work.outputs) == (job.inputs, job.files)
        agree(rule, wildcards, work, {"source": source_of_job(job).file})
        temporary = [name for name, file in rule.output.items() if is_flagged(file, "temp")]
        assert temporary == [name for name in job.files if name in job.stage.temporary]
        assert ("gpu" in rule.resources) == (job.stage.on_device is not never)
    unused = {stage.name for stage in GRAPH} - {job.stage.name for job in jobs}
    assert unused <= {
        "features", "retention", "client_accuracy", "core", "selected_labels",
        "judged_distillation", "base_model",
    }  # fmt: skip


def test_the_rules_of_results_are_their_stages(workflow, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    catalogue = workflow.globals["CATALOGUE"]
    for what in ("runs", "results", "claims"):
        path = description_file(what).format(experiment=SCALE[0], scale=SCALE[1])
        write_json(path, describe(catalogue, *SCALE, what))
    shown = {"table": TABLES, "figure": FIGURES}
    for stage, what in ((one, of) for one in RESULTS for of in shown.get(one.name, ("",))):
        formats = [FORMATS.get(stage.name, ()), *((one,) for one in FURTHER.get(stage.name, ()))]
        for file in (one for of in formats for one in result_files(stage.name, *SCALE, what, of)):
            rule, wildcards = rule_of(workflow, file)
            work = work_of(rule, wildcards)
            assert work.stage == stage.name
            assert rule.name in (stage.name, f"{stage.name}_in_another_format")
            # Some files are behind those of runs.
            read = lists(rule.expand_input(wildcards)[0])
            others = {name: files for name, files in read.items() if name not in work.inputs}
            agree(rule, wildcards, work, others | {"source": Source(stage.name).file})


def test_the_rule_of_choices_is_their_stage(workflow, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    choice, run = next(iter(workflow.globals["CATALOGUE"].choices.items()))
    write_json(choice_file(choice), describe_choice(run))
    for name in CHOICE.outputs.values():
        rule, wildcards = rule_of(workflow, f"results/choices/{choice}/{name}")
        work = work_of(rule, wildcards)
        agree(rule, wildcards, work, {"source": Source("choice").file})
