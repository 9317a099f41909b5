"""What still contains a client after an aggregator has forgotten it.

Forgetting makes one new aggregator, and trains no model. What was made before stays where it is:
whoever has to delete a client deletes these files as well.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from operator import itemgetter

from fedstage.experiments.catalogue import Catalogue
from fedstage.plan import artefacts
from fedstage.plan.sharing import local_line, partition_id, unquantised
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.one_shot import OneShotLine


@dataclass(frozen=True)
class Trace:
    """A file, or files of a pattern, that a client is in.

    Attributes
    ----------
    client : int
        Who was to be forgotten.
    contains : str
        What of the client.
    files : str
        Path below the working folder; ``*`` stands for any name.
    """

    client: int
    contains: str
    files: str


def traces_of(catalogue: Catalogue, experiment: str, scale: str) -> list[dict[str, str | int]]:
    """Return the traces of all clients that runs of an experiment forget, ready for JSON."""
    traces = [
        trace
        for line in _forgetful(catalogue, experiment, scale)
        for client in sorted(set(line.forget))
        for trace in _traces(catalogue, local_line(line), client)
    ]
    return [asdict(trace) for trace in dict.fromkeys(traces)]


def forgets(catalogue: Catalogue, experiment: str, scale: str) -> bool:
    """Whether a run of an experiment forgets a client."""
    return any(_forgetful(catalogue, experiment, scale))


def _forgetful(catalogue: Catalogue, experiment: str, scale: str) -> list[OneShotLine]:
    lines = (one.line for run in catalogue.runs[experiment, scale] for one in run.trained())
    return [line for line in lines if isinstance(line, OneShotLine) and line.forget]


def _traces(catalogue: Catalogue, local: LocalLine, client: int) -> Iterator[Trace]:
    yield Trace(client, "its samples", artefacts.data_file(local.data, "train"))
    for _, line in sorted(catalogue.local_lines.items()):  # indexed in no order
        if _shares(line) == _shares(local):
            yield from _of_local_models(line, client)
            yield from _of_quantised_models(catalogue, line, client)
    learnt = [(artefacts.aggregator_folder(one), one) for one in catalogue.aggregators.values()]
    learnt += [(artefacts.student_folder(one), one) for one in catalogue.students.values()]
    for folder, one in sorted(learnt, key=itemgetter(0)):
        if _shares(local_line(one)) == _shares(local) and client not in one.forget:
            yield Trace(client, "learnt from its model and samples", folder)
    for name, federated in sorted(catalogue.lines.items()):
        if _shares(federated) == _shares(local):
            yield Trace(client, "rounds that it may be in", f"{artefacts.RESULTS}/training/{name}")


def _of_local_models(line: LocalLine, client: int) -> Iterator[Trace]:
    """Yield where a client is in models that are trained without federation."""
    yield Trace(client, "which samples are its own", artefacts.clients_table(line))
    yield Trace(client, "its label counts", artefacts.label_histogram(line))
    if line.pooled:
        yield Trace(client, "learnt from its samples", artefacts.local_models(line)[0])
        return
    logits = f"{artefacts.local_folder(line)}/logits/*"
    yield Trace(client, "its model", artefacts.local_models(line)[client])
    yield Trace(client, "what its model says", f"{logits}/client_{client}-*.safetensors")
    for role, fraction in (
        ("aggregator", line.aggregator_fraction),
        ("validation", line.validation),
    ):
        if fraction:
            files = f"{logits}/client_*-{role}.safetensors"
            yield Trace(client, "what models say about its samples", files)


def _of_quantised_models(catalogue: Catalogue, line: LocalLine, client: int) -> Iterator[Trace]:
    """Yield where a client's model is in other precisions; what these say are logits as well."""
    for _, one in sorted(catalogue.precisions.items()):
        if one.quantisation.name != "none" and unquantised(one) == line:
            yield Trace(client, "its quantised model", artefacts.asked_models(one)[client])


def _shares(line: Line | LocalLine) -> str:
    """Return a name of who has which samples, whatever they are for."""
    if isinstance(line, LocalLine):
        line = line.model_copy(update={"aggregator_fraction": 0.0})
    return partition_id(line.model_copy(update={"validation": 0.0}))
