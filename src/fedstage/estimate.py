"""How much disk a target will take, told before it is made."""

from collections.abc import Iterable, Iterator

from fedstage import graph
from fedstage.catalogue import Catalogue, split_target
from fedstage.config import STATEFUL_TRAINERS, Data, LocalLine, Model
from fedstage.experiments import Run
from fedstage.lines import model_of
from fedstage.models.size import state_size

GIGABYTE = 1e9

#: Shape [C, H, W] and classes of the data sets whose names say so.
SHAPES: dict[str, tuple[tuple[int, int, int], int]] = {
    "digits": ((1, 8, 8), 10),
    "cifar10": ((3, 32, 32), 10),
    "cifar100": ((3, 32, 32), 100),
    "svhn": ((3, 32, 32), 10),
}


def describe_size(catalogue: Catalogue, targets: Iterable[str]) -> str:
    """Say in one line what the models and updates of all targets take when they are complete."""
    runs = [run for target in targets for run in catalogue.runs[split_target(target)]]
    sizes = dict(file for run in runs for file in _files(run, catalogue.config.keep_updates))
    kept = "with" if catalogue.config.keep_updates else "without"
    unknown = {run.line.data.name for run in runs} - set(SHAPES)
    note = f"; {', '.join(sorted(unknown))} not counted, its shape is read later" if unknown else ""
    total = sum(sizes.values()) / GIGABYTE
    return f"{len(sizes)} models, {kept} participants' updates: {total:.2f} GB in all{note}"


def _files(run: Run, keep_updates: bool) -> Iterator[tuple[str, int]]:
    if isinstance(run.line, LocalLine):
        size = _model_size(run.line.data, run.line.model)
        yield from ((path, size) for path in graph.local_models(run.line))
        return
    for round in range(1, run.length.rounds + 1):
        for group in range(run.line.global_models):
            size = _model_size(run.line.data, model_of(run.line, group))
            yield graph.aggregated_model(run.line, round, group), size
            yield graph.global_model(run.line, round, group), size
            if keep_updates:
                update = size * (2 if run.line.local.name in STATEFUL_TRAINERS else 1)
                yield from ((path, update) for path in graph.updates(run.line, round, group))


def _model_size(data: Data, model: Model) -> int:
    if data.name not in SHAPES:
        return 0
    shape, classes = SHAPES[data.name]
    return state_size(model, shape, classes)
