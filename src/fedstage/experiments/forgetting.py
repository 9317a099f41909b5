"""Files that still contain a client after an aggregator has forgotten it.

Forgetting makes one new aggregator and trains no model. Earlier files stay in place: whoever has to
delete a client deletes them as well.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from fedstage.experiments.catalogue import Catalogue, resolve_all
from fedstage.plan import data_files, one_shot_artefacts
from fedstage.plan.identity import partition_id
from fedstage.plan.one_shot_sharing import local_line, unquantised
from fedstage.plan.results import RESULTS
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.one_shot import OneShotLine


def forgets(catalogue: Catalogue, experiment: str, scale: str) -> bool:
    """Whether a run of an experiment forgets a client."""
    return any(_forgetful(catalogue, experiment, scale))


@dataclass(frozen=True)
class Trace:
    """A file, or pattern of files, below the working folder, with what it contains of a client."""

    client: int
    contains: str
    files: str


def traces_of(catalogue: Catalogue, experiment: str, scale: str) -> list[dict[str, str | int]]:
    """Return the traces, for JSON, of all clients that runs of an experiment forget.

    They may be in files of any experiment.
    """
    every = resolve_all(catalogue.config, catalogue.folder)
    traces = [
        trace
        for line in _forgetful(catalogue, experiment, scale)
        for client in sorted(set(line.forget))
        for trace in _traces(every, local_line(line), client)
    ]
    return [asdict(trace) for trace in dict.fromkeys(traces)]


def _forgetful(catalogue: Catalogue, experiment: str, scale: str) -> list[OneShotLine]:
    lines = (one.line for run in catalogue.runs[experiment, scale] for one in run.trained())
    return [line for line in lines if isinstance(line, OneShotLine) and line.forget]


def _traces(catalogue: Catalogue, local: LocalLine, client: int) -> Iterator[Trace]:
    yield Trace(client, "its samples", data_files.data_file(local.data, "train"))
    for name, line in sorted(catalogue.lines.items()):  # which have no order
        if _partition_of(line) != _partition_of(local):
            continue
        if isinstance(line, LocalLine):
            yield from _of_local_models(line, client)
            yield from _of_quantised_models(catalogue, line, client)
        elif isinstance(line, Line):
            yield Trace(client, "rounds that it may be in", f"{RESULTS}/training/{name}")
        elif client not in line.forget:
            folder = one_shot_artefacts.one_shot_folder(line)
            yield Trace(client, "learnt from its model and samples", folder)


def _of_local_models(line: LocalLine, client: int) -> Iterator[Trace]:
    """Yield the traces of a client in models that are trained without federation."""
    yield Trace(client, "which samples are its own", data_files.clients_table(line))
    yield Trace(client, "its label counts", data_files.label_histogram(line))
    if line.pooled or line.on_core:
        yield Trace(client, "learnt from its samples", one_shot_artefacts.local_models(line)[0])
        return
    logits = f"{one_shot_artefacts.local_folder(line)}/logits/*"
    yield Trace(client, "its model", one_shot_artefacts.local_models(line)[client])
    yield Trace(client, "what its model says", f"{logits}/client_{client}-*.safetensors")
    fractions = {"aggregator": line.aggregator_fraction, "validation": line.validation}
    for role, fraction in fractions.items():
        if fraction:
            files = f"{logits}/client_*-{role}.safetensors"
            yield Trace(client, "what models say about its samples", files)


def _of_quantised_models(catalogue: Catalogue, line: LocalLine, client: int) -> Iterator[Trace]:
    """Yield a client's quantised models, whose logits `_of_local_models` has."""
    for _, one in sorted(catalogue.precisions.items()):
        if one.quantisation.name != "none" and unquantised(one) == line:
            model = one_shot_artefacts.models_in_precision(one)[client]
            yield Trace(client, "its quantised model", model)


def _partition_of(line: Line | LocalLine | OneShotLine) -> str:
    """Return an id of the partition, whatever the roles of samples."""
    if isinstance(line, OneShotLine):
        line = local_line(line)
    if isinstance(line, LocalLine):
        line = line.model_copy(update={"aggregator_fraction": 0.0})
    return partition_id(line.model_copy(update={"validation": 0.0}))
