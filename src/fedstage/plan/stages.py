"""All stages: of the graph, of segments, which run several of them in one job, and of results."""

from collections.abc import Mapping
from functools import partial
from typing import Any, get_args

from fedstage.plan import data_files, one_shot, scores, training_folder, unfederated
from fedstage.plan.data_files import AnyRecipe
from fedstage.plan.graph import Command, Stage, declared
from fedstage.plan.jobs import OF_ROUNDS
from fedstage.plan.results import FOLDERS, description_file, figure_files, files_at, result_file
from fedstage.plan.training import local_training, logits

#: The stages whose files depend on a configuration, in the order of the graph.
GRAPH: tuple[Stage, ...] = (
    *declared(data_files),
    *OF_ROUNDS,
    *declared(training_folder),
    *declared(scores),
    *declared(unfederated),
    *declared(one_shot),
    *one_shot.EVALUATIONS.values(),
)

#: The names of folders whose subfolders are named after settings, not after experiments.
OF_SETTINGS = {FOLDERS["choice"], *(stage.folder.name for stage in GRAPH)}
#: The names of folders of runs, and of what is behind them but data, partitions and weights.
RECIPES = tuple(
    dict.fromkeys(stage.folder.name for stage in GRAPH if stage.folder.kind in get_args(AnyRecipe))
)

SEGMENT = Command(
    name="segment",
    about="run the stages of several rounds of some groups in one process",
    on_device=local_training.on_device,
)
LOGITS_SEGMENT = Command(
    name="logits_segment",
    module="segment",
    about="compute the logits of several rounds in one process",
    on_device=logits.on_device,
)


def _result(
    name: str, about: str, outputs: str, plan: bool = False, module: str = "", **figures: str
) -> Command:
    """Describe a stage of results, which reads the runs of an experiment at a scale.

    `figures` are the ends of the figures' names, by option.
    """
    files = {option: result_file(name, option) for option in outputs.split()}
    files |= {option: figure_files(end) for option, end in figures.items()}
    return Command(
        name=name, about=about, outputs=files, presents=True, about_plan=plan, module=module
    )


_of_plan = partial(_result, plan=True)
_TABLE = "csv parquet markdown html"

#: The stages that present an experiment.
RESULTS = (
    _result("run_scores", "put all scores of an experiment's runs into one file", "scores"),
    _result("tables", "put the metrics of an experiment into a table", f"{_TABLE} latex"),
    _result("figures", "draw accuracy over rounds, and the partition", "samples",
            accuracy="accuracy", partition="partition"),
    _result("comparison", "draw measured against published accuracy", "",
            module="figures", figure="published"),
    _result("sweep", "draw accuracy over the values of an axis", "",
            module="figures", figure="over"),
    _result("claims", "judge a paper's claims by the metrics of an experiment", _TABLE),
    _of_plan("communication", "add up what clients send and receive, and draw accuracy against it",
             f"{_TABLE} by_run", figure="communication"),
    _of_plan("costs", "put accuracy, bytes, seconds and memory of each method into a table",
             _TABLE, figure="costs"),
    _of_plan("properties", "put the complexity and communication of methods into a table",
             "markdown csv"),
    _of_plan("simulation", "schedule the jobs of rounds on clients and a server", "csv",
             figure="schedule"),
    _of_plan("round_times", "put the seconds of a round's jobs into a table",
             "markdown csv parquet by_run"),
    _result("retention_summary", "put what methods forget into a table, and draw it",
            f"{_TABLE} by_run overlap", curves="retention"),
    _result("clients", "put the accuracies of clients and classes into a table", "csv markdown"),
    _result("report", "show table, figures, claims and their origin in one HTML file", "output"),
)  # fmt: skip

CHOICE = Command(
    name="choice",
    about="take the candidate that is most accurate on validation samples",
    outputs={"output": "metrics.parquet", "chosen": "chosen.json"},
)

#: All stages by name.
STAGES: dict[str, Command] = {
    stage.name: stage for stage in (CHOICE, *GRAPH, SEGMENT, LOGITS_SEGMENT, *RESULTS)
}


def module_of(stage: str) -> str:
    """Return the name of the module that has the function of a stage."""
    return f"fedstage.stages.{STAGES[stage].module or stage}"


#: The results with figures that reports show, and their stages.
_REPORTED = {"communication": "communication", "costs": "costs", "retention": "retention_summary"}
#: The stages that show something of other results, if an experiment has these.
OF_RESULTS = ("properties", "claims", "report")
#: The stages that read the file of scores.
_OF_SCORES = ("tables", "figures", "comparison", "sweep", "claims", "report")


def given_files(stage: str, described: Mapping[str, Any]) -> dict[str, str | list[str]]:
    """Return what a stage of results reads in addition to the runs' description, by its names.

    `described` has the runs of an experiment at a scale, for `OF_RESULTS` also its results.
    """
    at = {key: described[key] for key in ("experiment", "scale")}
    wanted, found = described.get("results", ()), dict[str, str | list[str]]()
    if stage in OF_RESULTS:
        found["wanted"] = description_file("results").format(**at)
    if stage in _OF_SCORES:
        found["scores"] = result_file("run_scores", "scores").format(**at)
    if stage == "costs" or (stage == "properties" and "communication" in wanted):
        found["communicated"] = result_file("communication", "by_run").format(**at)
    if stage in ("claims", "report") and described["judged"]:
        found["definitions"] = description_file("claims").format(**at)
        kinds = (kind for kind in ("round_times", "communication", "retention") if kind in wanted)
        tables = [result_file(_REPORTED.get(kind, kind), "by_run").format(**at) for kind in kinds]
        found["measurements"] = tables
    if stage == "report":
        stages = ["figures", *(["sweep"] if described.get("over") else [])]
        stages += [_REPORTED[result] for result in wanted if result in _REPORTED]
        shown = (file for name in stages for file in files_of_result(name, **at))
        ends = (".html", ".svg", ".txt")
        found["documents"] = [file for file in shown if file.endswith(ends)]
    return found


def made_files(stage: str, experiment: str, scale: str) -> dict[str, str | list[str]]:
    """Return the files that a stage of results makes, by its names; several of a figure."""
    paths = STAGES[stage].outputs.items()
    files = {option: files_at(path, experiment, scale) for option, path in paths}
    return {name: found if "{format}" in STAGES[stage].outputs[name] else found[0]
            for name, found in files.items()}  # fmt: skip


def files_of_result(stage: str, experiment: str, scale: str) -> list[str]:
    """Return all files that a stage of results makes of an experiment at a scale."""
    paths = STAGES[stage].outputs.values()
    return [file for path in paths for file in files_at(path, experiment, scale)]
