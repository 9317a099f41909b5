"""How much disk a target will take, told before it is made."""

from collections.abc import Collection, Iterable, Iterator

from fedstage.experiments.catalogue import Catalogue, trained_runs
from fedstage.models.size import state_size
from fedstage.plan import artefacts
from fedstage.plan.runs import Run
from fedstage.plan.segments import files_read, inputs, plan
from fedstage.plan.sharing import client_model, local_line, model_of, quantised_line
from fedstage.settings.config_file import Keep
from fedstage.settings.data import Data
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.local_training import STATEFUL_TRAINERS
from fedstage.settings.models import Model
from fedstage.settings.one_shot import OneShotLine

GIGABYTE = 1e9
QUANTISED = 4  # times as small as float32, but for what is not quantised

#: Shape of a sample and classes of the data sets whose names say so.
SHAPES: dict[str, tuple[tuple[int, ...], int]] = {
    "digits": ((1, 8, 8), 10),
    "cifar10": ((3, 32, 32), 10),
    "cifar100": ((3, 32, 32), 100),
    "svhn": ((3, 32, 32), 10),
    "heart_disease": ((13,), 2),
}


def describe_size(catalogue: Catalogue, targets: Iterable[str]) -> str:
    """Say in one line what the models and updates of all targets take when they are complete."""
    asked = (run for target in targets for run in trained_runs(catalogue, target))
    runs = [part for run in asked for part in run.chain()]
    keep = catalogue.config.keep
    length = catalogue.config.execution.segment_rounds
    parts = [part for parts in plan(runs, length) for part in parts] if keep != "all" else []
    read = files_read(runs, map(inputs, parts))
    sizes = dict(file for run in runs for file in _files(run, keep, read))
    kept = {"all": "with all", "models": "with some", "needed": "with some"}[keep]
    unknown = {run.line.data.name for run in runs} - set(SHAPES)
    note = f"; {', '.join(sorted(unknown))} not counted, its shape is read later" if unknown else ""
    total = sum(sizes.values()) / GIGABYTE
    return f"{len(sizes)} models, {kept} participants' updates: {total:.2f} GB in all{note}"


def _files(run: Run, keep: Keep, read: Collection[str]) -> Iterator[tuple[str, int]]:
    if not isinstance(run.line, Line):
        yield from _without_rounds(run.line, run.length.evaluate_client)
        return
    for round in range(1, run.length.rounds + 1):
        for group in range(run.line.global_models):
            size = _model_size(run.line.data, model_of(run.line, group))
            update = size * _update_parts(run.line)
            models = (
                artefacts.aggregated_model(run.line, round, group),
                artefacts.global_model(run.line, round, group),
            )
            updates = artefacts.updates(run.line, round, group)
            every = keep != "needed" or round == run.length.rounds
            yield from ((path, size) for path in models if every or path in read)
            yield from ((path, update) for path in updates if keep == "all" or path in read)


def _without_rounds(
    line: LocalLine | OneShotLine, client: int | None = None
) -> Iterator[tuple[str, int]]:
    """Yield the models of clients that train to the end, and of a student that they teach.

    Where only one `client` is scored, no other trains.
    """
    if isinstance(line, OneShotLine) and line.distillation is not None:
        yield artefacts.student_file(line), _model_size(line.data, line.student or line.model)
    local = local_line(line) if isinstance(line, OneShotLine) else line
    quantised = quantised_line(line) if isinstance(line, OneShotLine) else line
    models, asked = artefacts.local_models(local), artefacts.asked_models(quantised)
    for one in range(len(models)) if client is None else [client]:
        size = _model_size(local.data, client_model(local, one))
        yield models[one], size
        if asked[one] != models[one]:
            yield asked[one], size // QUANTISED


def _update_parts(line: Line) -> int:
    """Return how many times a model's size an update has: weights, variates, what was left out."""
    left = line.compression.name == "stc" and line.compression.residuals
    return 1 + (line.local.name in STATEFUL_TRAINERS) + left


def _model_size(data: Data, model: Model) -> int:
    if data.name not in SHAPES:
        return 0
    shape, classes = SHAPES[data.name]
    return state_size(model, shape, classes)
