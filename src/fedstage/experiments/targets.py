"""Targets: their files, and the runs that a command line is about."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Literal

from fedstage.errors import FedstageError
from fedstage.experiments.catalogue import Catalogue, split_target
from fedstage.experiments.descriptions import claims_on, comparisons_at, describe_runs
from fedstage.experiments.forgetting import forgets, traces_of
from fedstage.plan.generator_sharing import clients_generate, generating, training_generators
from fedstage.plan.identity import aggregator_id, generator_id, line_id, local_id, student_id
from fedstage.plan.one_shot_sharing import generates, local_line
from fedstage.plan.participants import cohorts
from fedstage.plan.runs import Run
from fedstage.plan.sharing import normalised, undistilled
from fedstage.settings.groups import client_groups
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.merging import Raw
from fedstage.settings.one_shot import OneShotLine

#: The scale whose comparisons are those of a paper's table.
_PAPER = "paper"


def asked_runs(catalogue: Catalogue, arguments: str) -> list[Run]:
    """Return the runs that a command line is about, and those that share rounds with them.

    It is about the configured targets, and about the runs whose experiment and scale, or line's id,
    is in the arguments. All runs of the catalogue that share rounds determine how these are cut
    into segments and which files stay, so jobs on other machines get the arguments of the command
    that started them.
    """
    every = [
        (key, one)
        for key, runs in catalogue.runs.items()
        for run in runs
        for one in run.evaluated()
    ]
    configured = {split_target(target) for target in catalogue.config.targets}
    shared = {
        _shared(part.line)
        for key, run in every
        if key in configured or is_named(key, run, arguments)
        for part in run.chain()
    }
    return [part for _, run in every for part in run.chain() if _shared(part.line) in shared]


def cohorts_of(
    runs: Iterable[Run], size: int | Literal["all"]
) -> dict[tuple[int, tuple[int, ...]], list[str]]:
    """Return each cohort of at most `size` slots, by group and slots, with the ids of its lines."""
    found: dict[tuple[int, tuple[int, ...]], list[str]] = defaultdict(list)
    lines = [run.line for run in runs if isinstance(run.line, Line)]
    for line in dict.fromkeys(kind(line) for line in lines for kind in (normalised, undistilled)):
        for group in client_groups(line):
            for slots in cohorts(line, group, None if size == "all" else size):
                found[group, slots].append(line_id(line))
    return dict(found)


def is_named(key: tuple[str, str], run: Run, text: str) -> bool:
    """Whether a run's experiment and scale, or the id of one of its lines, stands in a text."""
    ids = (name for part in run.chain() for name in _ids(part.line))
    marks = ("{}/{}".format(*key), "experiment={},scale={}".format(*key), *ids)
    return any(mark in text for mark in marks)


def _shared(line: Line | LocalLine | OneShotLine) -> Line | LocalLine | OneShotLine:
    """Return the line whose rounds other runs may share."""
    return undistilled(line) if isinstance(line, Line) else line


def _ids(line: Line | LocalLine | OneShotLine) -> list[str]:
    if isinstance(line, LocalLine):
        return [local_id(line)]
    if isinstance(line, OneShotLine):
        taught = [student_id(line)] if line.distillation is not None else []
        lines = [generating(line)] if generates(line) else []
        lines += [training_generators(line)] if clients_generate(line) else []
        ids = [*taught, aggregator_id(line), local_id(local_line(line))]
        return [*ids, *map(generator_id, lines)]
    return [line_id(line), line_id(undistilled(line))]


def results_of(catalogue: Catalogue, target: str) -> list[str]:
    """Return the files of a target such as quickstart or fedsdd_table2/mini."""
    experiment, scale = split_target(target)
    definition = catalogue.experiments[experiment]
    formats = ("csv", "parquet", "md", "html")

    def files(result: str, kinds: tuple[str, ...] = ("md", "csv")) -> list[str]:
        return [f"results/{result}/{experiment}/{scale}.{kind}" for kind in kinds]

    def figures(*names: str) -> list[str]:
        return [f"results/figures/{experiment}/{scale}_{name}.png" for name in names]

    judged = files("claims", formats) if claims_on(catalogue, experiment) else []
    forgotten = files("forgetting") if forgets(catalogue, experiment, scale) else []
    published = catalogue.published.get((experiment, scale))
    beside = ["published"] if published and published.comparable else []
    every: dict[str, list[str]] = {
        "table": [*files("tables", (*formats, "tex")), *forgotten, *judged],
        "figures": figures(
            "accuracy", "partition", *beside, *(["over"] * bool(definition.table.over))
        ),
        "communication": [*files("communication", formats), *figures("communication"), *judged],
        "properties": files("properties"),
        "simulation": [*files("simulation"), *figures("schedule")],
        "retention": [
            *files("retention", (*formats, "overlap.csv")),
            *figures("retention", "venn"),
            *judged,
        ],
        "clients": files("clients"),
        "round_times": [*files("round_times"), *judged],
    }
    return list(dict.fromkeys(path for result in definition.results for path in every[result]))


def describe(catalogue: Catalogue, experiment: str, scale: str, what: str) -> Raw:
    """Return the `runs`, `claims` or `traces` of an experiment at a scale, for JSON.

    Raises
    ------
    FedstageError
        If there is no such experiment and scale, or it has no claims, or forgets no client.
    """
    if (experiment, scale) not in catalogue.runs:
        raise FedstageError(f"{experiment}/{scale}: no such experiment and scale")
    if what == "runs":
        return describe_runs(catalogue, experiment, scale)
    if what == "claims":
        if not (claims := claims_on(catalogue, experiment)):
            raise FedstageError(f"{experiment}: no claim is about it")
        return {"claims": claims, "comparisons": comparisons_at(catalogue, experiment, _PAPER)}
    if not forgets(catalogue, experiment, scale):
        raise FedstageError(f"{experiment}/{scale}: no run forgets a client")
    title = catalogue.experiments[experiment].title
    traces = traces_of(catalogue, experiment, scale)
    return {"experiment": experiment, "scale": scale, "title": title, "traces": traces}
