"""All stages: of the graph, of segments, which run several of them in one job, and of results."""

from collections.abc import Iterator
from functools import partial
from types import ModuleType
from typing import Any

from fedstage.plan import data_files, discriminators, one_shot, scores, unfederated
from fedstage.plan.graph import Command, Stage
from fedstage.plan.jobs import OF_ROUNDS
from fedstage.plan.results import FOLDERS, figure_files, files_at, result_file
from fedstage.plan.training import local_training, logits
from fedstage.settings.recipes import Recipe


def _declared(module: ModuleType) -> Iterator[Stage]:
    """Yield the stages that a module declares, in its order."""
    stages = (value for value in vars(module).values() if isinstance(value, Stage))
    return (stage for stage in stages if stage.inputs.__module__ == module.__name__)


#: The stages whose files depend on a configuration, in the order of the graph.
GRAPH: tuple[Stage, ...] = (
    *_declared(data_files),
    *OF_ROUNDS,
    *_declared(discriminators),
    *_declared(scores),
    *_declared(unfederated),
    *_declared(one_shot),
    *one_shot.EVALUATIONS.values(),
)

#: The names of folders whose subfolders are named after settings, not after experiments.
OF_SETTINGS = {FOLDERS["choice"], *(stage.folder.name for stage in GRAPH)}
#: The names of folders in which files of settings lie.
RECIPES = tuple(dict.fromkeys(stage.folder.name for stage in GRAPH if stage.folder.recipe))

SEGMENT = Command(
    name="segment",
    about="run the stages of several rounds of some groups in one process",
    given=("recipe",),
    on_device=local_training.on_device,
    calls=tuple(stage.name for stage in OF_ROUNDS if stage is not logits),
)
LOGITS_SEGMENT = Command(
    name="logits_segment",
    about="compute the logits of several rounds in one process",
    given=("recipe",),
    on_device=logits.on_device,
    calls=(logits.name,),
)


def _result(
    name: str, about: str, outputs: str, given: str = "", plan: bool = False, **figures: str
) -> Command:
    """Describe a stage of results, which reads the runs of an experiment at a scale.

    `figures` are the ends of the figures' names, by option.
    """
    options = ("runs", *given.split())
    files = {option: result_file(name, option) for option in outputs.split()}
    files |= {option: figure_files(end) for option, end in figures.items()}
    return Command(
        name=name, about=about, outputs=files, given=options, presents=True, about_plan=plan
    )


_of_plan = partial(_result, plan=True)
_TABLE = "csv parquet markdown html"

#: The stages that present an experiment.
RESULTS = (
    _result("run_scores", "put all scores of an experiment's runs into one file", "scores"),
    _result("tables", "put the metrics of an experiment into a table", f"{_TABLE} latex",
            "scores"),
    _result("figures", "draw accuracy over rounds, and the partition", "samples", "scores",
            accuracy="accuracy", partition="partition"),
    _result("comparison", "draw measured against published accuracy", "", "scores",
            figure="published"),
    _result("sweep", "draw accuracy over the values of an axis", "", "scores", figure="over"),
    _result("claims", "judge a paper's claims by the metrics of an experiment", _TABLE,
            "scores definitions measurements"),
    _of_plan("communication", "add up what clients send and receive, and draw accuracy against it",
             f"{_TABLE} by_run", figure="communication"),
    _of_plan("costs", "put accuracy, bytes, seconds and memory of each method into a table",
             _TABLE, "communicated", figure="costs"),
    _of_plan("properties", "put the complexity and communication of methods into a table",
             "markdown csv", "communicated"),
    _of_plan("simulation", "schedule the jobs of rounds on clients and a server", "csv",
             figure="schedule"),
    _of_plan("round_times", "put the seconds of a round's jobs into a table",
             "markdown csv parquet by_run"),
    _result("retention_summary", "put what methods forget into a table, and draw it",
            f"{_TABLE} by_run overlap", curves="retention"),
    _result("clients", "put the accuracies of clients and classes into a table", "csv markdown"),
    _result("report", "show table, figures, claims and their origin in one HTML file",
            "output", "scores definitions measurements documents"),
)  # fmt: skip

OTHERS = (
    Command(
        name="recipe",
        about="write the settings of a folder where its stages read them",
        outputs={"output": "recipe.yaml"},
    ),
    Command(
        name="choice",
        about="take the candidate that is most accurate on validation samples",
        outputs={"output": "metrics.parquet", "chosen": "chosen.json"},
    ),
)

#: All stages by name.
STAGES: dict[str, Command] = {
    stage.name: stage for stage in (*OTHERS, *GRAPH, SEGMENT, LOGITS_SEGMENT, *RESULTS)
}

#: The modules of stages that share one; any other module is named after its stage.
_SHARED = {
    "client_models": "quantised_model client_logits",
    "discriminators": "public_generator client_discriminator client_odds",
    "distillation": "judged_distillation label_distillation data_free_distillation",
    "figures": "comparison sweep",
    "partition": "core",
    "public_labels": "cached_labels selected_labels",
    "secure_aggregation": "advertise share masked_input unmask client_state",
    "segment": "logits_segment",
    "server_model": "feature_training head_sharing",
}
_MODULES = {stage: module for module, stages in _SHARED.items() for stage in stages.split()}


def module_of(stage: str) -> str:
    """Return the name of the module that has the function of a stage."""
    return f"fedstage.stages.{_MODULES.get(stage, stage)}"


def configuration_of(name: str) -> Any:
    """Return the class of the configurations that a stage reads from a file, if it does."""
    stage = STAGES[name]
    if "recipe" not in stage.options:
        return None
    return stage.folder.kind if isinstance(stage, Stage) else Recipe


def files_of_result(stage: str, experiment: str, scale: str) -> list[str]:
    """Return all files that a stage of results makes of an experiment at a scale."""
    paths = STAGES[stage].outputs.values()
    return [file for path in paths for file in files_at(path, experiment, scale)]
