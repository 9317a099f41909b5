"""Stage `properties`: complexity, secure aggregation and communication of methods, as a table.

These are FedEED's Table 3 and FedSDD's Table 1: formulas, with the bytes that were sent.
"""

from pathlib import Path

from fedstage.experiments.runs_file import ExperimentRun, read_runs_file
from fedstage.plan.runs import exposed, predicting
from fedstage.plan.training import aggregation
from fedstage.protocol.groups import client_groups
from fedstage.results.tables.columns import Cell, Column, text_table, write_csv
from fedstage.results.tables.documents import write_document
from fedstage.results.tables.labels import NOTHING, for_people, place_for_people
from fedstage.settings.ensembles import Aggregated, Bayesian, Designated
from fedstage.settings.recipes import Recipe
from fedstage.storage.tables import load_table


def _times(ratio: float | None) -> str:
    return NOTHING if ratio is None else f"{ratio:.2f}×"


_COLUMNS = (
    Column("ensemble", "Ensemble",
        "models of the teacher, which the server asks about each public image. C: participants of "
        "a round, K: global models, R: rounds whose models are members, S: sampled models; "
        f"{NOTHING}: nothing is distilled.", lambda formula: formula or NOTHING),
    Column("students", "Students", "models that are distilled in a round.", str),
    Column("reader", "Secure aggregation",
        "whether the server needs no more of single clients than the sum of their updates; if it "
        "does, the stage that reads them one by one.",
        lambda reader: f"no: {reader}" if reader else "yes"),
    Column("communication", "Communication",
        "measured: bytes to and from a client until training ends, relative to the first row.",
        _times),
    Column("published_communication", "Published", "the same as the paper states it.", _times),
)  # fmt: skip


def properties(*, runs: Path, communicated: Path | None = None, markdown: Path, csv: Path) -> None:
    """Put the ensemble, secure aggregation and communication of each method into a table.

    Parameters
    ----------
    communicated : Path, optional
        Bytes of each run, in the order of `runs`: the stage `communication` wrote it.
    """
    experiment = read_runs_file(runs)
    every = experiment.runs
    sent = load_table(communicated, ["bytes"])["bytes"].to_pylist() if communicated else []
    ratios = [moved / sent[0] for moved in sent] or [None] * len(every)
    rows: dict[tuple[Cell, ...], dict[str, Cell]] = {}
    for run, ratio in zip(every, ratios, strict=True):  # the first seed's
        place = {axis: run.settings[axis] for axis in experiment.axes}
        rows.setdefault(tuple(place.values()), place | _properties(run) | {"communication": ratio})
    columns = _COLUMNS[: 5 if experiment.ratio else 4 if communicated else 3]
    lines = [([*place_for_people(row, experiment).values()], row) for row in rows.values()]
    about = "the members of a method's teacher, and what a client sends."
    if experiment.ratio:
        about += f" Published: {experiment.ratio}."
    table = text_table(for_people(experiment).axes, lines, columns)
    write_document(experiment, about, [table], markdown=markdown)
    write_csv(csv, [*rows.values()])


def _properties(run: ExperimentRun) -> dict[str, Cell]:
    recipe = run.recipe
    seen = exposed(predicting(recipe, run.length), but=aggregation)
    main = isinstance(recipe.global_trainer, Designated) and recipe.global_trainer.main == "first"
    students = (1 if main else recipe.global_models) if recipe.global_trainer else 0
    return {
        "ensemble": ensemble_size(recipe),
        "students": students,
        "reader": seen.stage if seen else None,
        "published_communication": run.published_ratio,
    }


def ensemble_size(recipe: Recipe) -> str | None:
    """Write the number of the teacher's models as a formula with its value: ``C + S + 1 = 19``."""
    trainer, groups = recipe.ensemble, len(client_groups(recipe))
    if recipe.global_trainer is None or trainer is None:
        return None
    if isinstance(trainer, Aggregated):
        return f"K R = {groups * trainer.checkpoints}"
    if isinstance(trainer, Bayesian):
        drawn = groups * (trainer.samples + 1)
        return f"C + {'S + 1' if groups == 1 else 'K (S + 1)'} = {recipe.participants + drawn}"
    return f"C = {recipe.participants}"
