"""Stage `properties`: properties of each method that follow from its DAG, as a table."""

from pathlib import Path

from fedstage.results.method_properties import Cost, Properties
from fedstage.results.method_properties import properties as properties_of
from fedstage.results.runs_file import ExperimentRun, read_runs_file
from fedstage.results.tables.exact import Cell, write_csv
from fedstage.results.tables.labels import NOTHING, place_for_people
from fedstage.results.tables.plain import write_markdown

_LEGEND = {
    "Ensemble": (
        "members of the teacher, which the server holds at a time; C: participants of a round; "
        f"{NOTHING}: nothing is distilled."
    ),
    "Passes": (
        "models that are asked about all public images in a round; what earlier rounds asked is "
        "read from their logits."
    ),
    "Students": "models that are distilled in a round.",
    "Secure aggregation": (
        "whether the server needs no more of single clients than the sum of their updates."
    ),
    "Overlap": (
        "share of the next round's participants that wait for no distillation of this round: they "
        "train while the server distils."
    ),
    "Inference": "models that the evaluated predictor consists of.",
}


def properties(*, runs: Path, markdown: Path, csv: Path) -> None:
    """Compute ensemble size, cost, secure aggregation and overlap of each method from its edges.

    The table has a row for each combination of its axes; seeds do not matter.
    """
    experiment = read_runs_file(runs)
    texts, numbers = [], []
    for run in [runs[0] for runs in experiment.places().values()]:
        found = properties_of(run.recipe, run.length)
        place = {axis: run.settings[axis] for axis in experiment.axes}
        texts.append(place_for_people(place, experiment) | _texts(found))
        numbers.append(place | _numbers(run, found))
    source = (
        f"Experiment `{experiment.experiment}` at scale `{experiment.scale}`: computed from what "
        "the jobs of a round read, without training."
    )
    write_markdown(markdown, experiment.title, source, texts, _LEGEND)
    write_csv(csv, numbers)


def _texts(found: Properties) -> dict[str, str]:
    distils = found.students > 0
    return {
        "Ensemble": as_function(found.ensemble) if distils else NOTHING,
        "Passes": as_function(found.passes) if distils else NOTHING,
        "Students": str(found.students) if distils else NOTHING,
        "Secure aggregation": "no" if found.sees_clients else "yes",
        "Overlap": NOTHING if found.free is None else f"{100 * found.free:g} %",
        "Inference": str(found.inference),
    }


def _numbers(run: ExperimentRun, found: Properties) -> dict[str, Cell]:
    return {
        "participants_a_round": run.recipe.participants,
        "ensemble_models": found.ensemble.models,
        "ensemble_growth": found.ensemble.growth,
        "passes": found.passes.models,
        "passes_growth": found.passes.growth,
        "students": found.students,
        "secure_aggregation": not found.sees_clients,
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
