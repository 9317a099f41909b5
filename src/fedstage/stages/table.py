"""Stage `table`: scores, claims, communication, costs and more of an experiment as tables."""

from collections.abc import Callable, Sequence
from pathlib import Path

from fedstage.experiments.runs_file import ExperimentRun, read_runs_file
from fedstage.results.claims import claim_tables, judge_claims
from fedstage.results.client_tables import client_tables
from fedstage.results.cost_tables import (
    cost_table,
    retention_table,
    time_table,
    traffic_tables,
)
from fedstage.results.documents import write_tables
from fedstage.results.table import Table, score_table
from fedstage.results.tidy import Tidy, read_tidy
from fedstage.settings.scores import ClaimsToJudge
from fedstage.settings.validation import validate
from fedstage.storage.files import load_json

#: Tables of costs, by what they show.
_OF_COSTS: dict[str, Callable[[Tidy, Tidy], list[Table]]] = {
    "communication": traffic_tables,
    "costs": lambda scores, costs: [cost_table(scores, costs)],
    "round_times": lambda _, costs: [time_table(costs)],
}


def table(
    *,
    runs: Path,
    scores: Path,
    costs: Path | None = None,
    definitions: Path | None = None,
    shown: str,
    files: list[Path],
) -> None:
    """Write what is `shown` to files, each in the format of its suffix.

    CSV and Parquet have exact numbers. Other formats are for people: numbers are rounded, and lines
    above and below explain them.
    """
    spent = read_tidy(costs) if costs else None
    tables = tables_of(shown, read_tidy(scores), spent, definitions, runs)
    for file in files:
        write_tables(file, tables)


def tables_of(
    shown: str, scores: Tidy, costs: Tidy | None, definitions: Path | None, runs: Path
) -> list[Table]:
    """Return the tables that show something of an experiment."""
    if shown == "claims":
        assert definitions is not None, "a file of claims is made for experiments that have some"
        listed = validate(ClaimsToJudge, load_json(definitions), str(definitions))
        return claim_tables(judge_claims(listed, scores, costs), scores.header)
    if shown in _OF_COSTS:
        assert costs is not None, "an input of these tables"
        return _OF_COSTS[shown](scores, costs)
    if shown == "retention":
        return [retention_table(scores)]
    if shown == "clients":
        return client_tables(scores, names_of(read_runs_file(runs).runs))
    return [score_table(scores)]


def names_of(runs: Sequence[ExperimentRun]) -> dict[str, tuple[str, ...]]:
    """Return the names of `clients` and `classes` that all data sets of the runs share, if any.

    Clients have names only if the partition is natural.
    """
    infos = {run.info: load_json(run.info) for run in runs if run.info}
    clients = {
        tuple(infos[run.info].get("client_names", ()))
        if run.info and run.candidates[0].parts[-1].recipe.partition.name == "natural"
        else ()
        for run in runs
    }
    classes = {tuple(info["class_names"]) for info in infos.values()}
    found = {"clients": clients, "classes": classes}
    return {of: next(iter(names)) for of, names in found.items() if len(names) == 1 and any(names)}
