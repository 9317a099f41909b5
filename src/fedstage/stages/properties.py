"""Stage `properties`: properties of each method that follow from its DAG, as a table."""

from collections.abc import Callable
from pathlib import Path

from fedstage.results.method_properties import Cost, Properties
from fedstage.results.method_properties import properties as properties_of
from fedstage.results.runs_file import ExperimentRun, read_runs_file
from fedstage.results.tables.columns import Column, text_table
from fedstage.results.tables.documents import write_document
from fedstage.results.tables.exact import Cell, write_csv
from fedstage.results.tables.labels import NOTHING, for_people, place_for_people


def _if_distilled(show: Callable[[Properties], str]) -> Callable[[Properties], str]:
    return lambda found: show(found) if found.students else NOTHING


_COLUMNS = (
    Column("ensemble", "Ensemble",
        "members of the teacher, which the server holds at a time; C: participants of a round; "
        f"{NOTHING}: nothing is distilled.",
        _if_distilled(lambda found: as_function(found.ensemble))),
    Column("passes", "Passes",
        "models that are asked about all public images in a round; what earlier rounds asked is "
        "read from their logits.", _if_distilled(lambda found: as_function(found.passes))),
    Column("students", "Students", "models that are distilled in a round.",
        _if_distilled(lambda found: str(found.students))),
    Column("secure_aggregation", "Secure aggregation",
        "whether the server needs no more of single clients than the sum of their updates; if it "
        "does, the stage that reads them one by one.",
        lambda found: f"no: {found.reader}" if found.reader else "yes"),
    Column("overlap", "Overlap",
        "share of the next round's participants that wait for no distillation of this round: they "
        "train while the server distils.",
        lambda found: NOTHING if found.free is None else f"{100 * found.free:g} %"),
    Column("inference", "Inference", "models that the evaluated predictor consists of.",
        lambda found: str(found.inference)),
)  # fmt: skip


def properties(*, runs: Path, markdown: Path, csv: Path) -> None:
    """Compute ensemble size, cost, secure aggregation and overlap of each method from its edges.

    The table has a row for each combination of its axes; seeds do not matter.
    """
    experiment = read_runs_file(runs)
    lines, numbers = [], []
    for run in [runs[0] for runs in experiment.places().values()]:
        found = properties_of(run.recipe, run.length)
        place = {axis: run.settings[axis] for axis in experiment.axes}
        keys = list(place_for_people(place, experiment).values())
        lines.append((keys, dict.fromkeys((column.name for column in _COLUMNS), found)))
        numbers.append(place | _numbers(run, found))
    source = "computed from what the jobs of a round read, without training."
    table = text_table(for_people(experiment).axes, lines, _COLUMNS)
    write_document(experiment, source, [table], markdown=markdown)
    write_csv(csv, numbers)


def _numbers(run: ExperimentRun, found: Properties) -> dict[str, Cell]:
    return {
        "participants_a_round": run.recipe.participants,
        "ensemble_models": found.ensemble.models,
        "ensemble_growth": found.ensemble.growth,
        "passes": found.passes.models,
        "passes_growth": found.passes.growth,
        "students": found.students,
        "secure_aggregation": not found.sees_clients,
        "reads_single_clients": found.reader,
        "overlap": found.free,
        "inference_models": found.inference,
    }


def as_function(cost: Cost) -> str:
    """Write a number of models as a function of C, and its value: ``C + 11 = 19``."""
    if not cost.growth:
        return str(cost.models)
    terms = "C" if cost.growth == 1 else f"{cost.growth:g} C"
    if cost.constant:
        terms += f" {'+' if cost.constant > 0 else '−'} {abs(cost.constant):g}"
    return f"{terms} = {cost.models}"
