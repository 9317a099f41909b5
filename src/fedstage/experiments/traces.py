"""What files of a line contain of a client that an aggregator has forgotten.

A natural client is somebody: whoever trains on the same data set has its samples, whatever the
seed, as do held-out samples and those of the server. A client of another partition is only a share
of samples that this partition, of one seed, has dealt out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fedstage.plan import data_files, one_shot, one_shot_artefacts
from fedstage.plan.folders import AnyLine
from fedstage.plan.identity import participation_id, partition_id
from fedstage.plan.one_shot_sharing import learns_from_moments, local_line
from fedstage.plan.results import RESULTS
from fedstage.plan.training_folder import training_folder
from fedstage.settings.data import Data
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.one_shot import OneShotLine
from fedstage.settings.public import CoreSamples, Generated, HeldOut
from fedstage.settings.server import needs_validation

#: Parts of a data set that may have samples of a natural client, and roles of its own.
_PARTS = ("train", "test", "test_own", "held_out", "server_validation", "info")
_IMAGES = ("aggregator", "validation", "test", "test_own", "held_out", "server_validation")

#: What a line has of a client: itself, its samples in other shares, or these as public ones.
Has = Literal["client", "samples", "public"]


@dataclass(frozen=True)
class Trace:
    """A file, folder or pattern below the working folder, with what it contains of a client."""

    client: int
    contains: str
    files: str


@dataclass(frozen=True)
class Forgotten:
    """A client, by its number among those of a line."""

    client: int
    line: LocalLine

    @property
    def natural(self) -> bool:
        """Whether the data say which samples are its own."""
        return self.line.partition.name == "natural"


def traces_in_data(gone: Forgotten, data: Data) -> Iterator[Trace]:
    """Yield the files of a data set that have samples of a client."""
    if data == gone.line.data and not gone.natural:
        yield Trace(gone.client, "its samples", data_files.data_file(data, "train"))
    elif gone.natural and _same_files(data, gone.line.data):
        for part in _PARTS:
            contains = "its name, and its share of means" if part == "info" else "its samples"
            also = "" if part in ("train", "info") else ", if any are among these"
            yield Trace(gone.client, f"{contains}{also}", data_files.data_file(data, part))


def traces_in_folder(gone: Forgotten, folder: str, line: AnyLine) -> Iterator[Trace]:
    """Yield what the files of a line's folder, and of its partition, contain of a client."""
    has = what_it_has(gone, line)
    if has in ("client", "samples"):
        yield from _of_partition(gone, line)
    if has == "client" and isinstance(line, LocalLine):
        yield from _of_local_models(gone, line)
    elif has == "client" and (own := _own_file(gone, folder)):
        yield own
    elif has == "client" and isinstance(line, OneShotLine):
        yield from _of_one_shot(gone, folder, line)
    elif has == "client":
        yield Trace(gone.client, "rounds that it may be in", folder)
    elif has == "samples":
        yield Trace(gone.client, "learnt from its samples in other shares", folder)
    elif has == "public":
        yield Trace(gone.client, "learnt from its samples as public ones", folder)


def what_it_has(gone: Forgotten, line: AnyLine) -> Has | None:
    """Return what a line has of a client, None if nothing."""
    if _partition_of(line) == _partition_of(gone.line):
        return "client"
    if not gone.natural:
        return None
    if _same_files(line.data, gone.line.data):
        same = line.partition == gone.line.partition and line.data == gone.line.data
        return "client" if same else "samples"
    if isinstance(line, LocalLine) or isinstance(line.public, HeldOut | CoreSamples | Generated):
        return None
    return "public" if _same_files(line.public, gone.line.data) else None


def folder_of(line: AnyLine) -> str:
    """Return the folder of a run's models."""
    if isinstance(line, Line):
        return training_folder(line)
    if isinstance(line, LocalLine):
        return one_shot_artefacts.local_folder(line)
    return one_shot.one_shot_folder(line)


def _of_partition(gone: Forgotten, line: AnyLine) -> Iterator[Trace]:
    divided = one_shot_artefacts.partition_line(line)
    yield Trace(gone.client, "which samples are its own", data_files.clients_table(divided))
    yield Trace(gone.client, "its label counts", data_files.label_histogram(divided))
    if isinstance(line, Line) and line.participation == "by_samples":
        plan = f"{RESULTS}/participation/{participation_id(line)}"
        yield Trace(gone.client, "drawn by its number of samples", plan)


def _of_local_models(gone: Forgotten, line: LocalLine) -> Iterator[Trace]:
    """Yield the traces of a client in models that are trained without federation."""
    client, folder = gone.client, one_shot_artefacts.local_folder(line)
    yield Trace(client, "scores weighted by its label counts", f"{folder}/metrics")
    if line.pooled or line.on_core:
        yield Trace(client, "learnt from its samples", one_shot_artefacts.local_models(line)[0])
        return
    yield Trace(client, "its model", one_shot_artefacts.local_models(line)[client])
    quantised = f"{folder}/quantised/*/client_{client}.safetensors"
    yield Trace(client, "its quantised model", quantised)
    said = f"{folder}/logits/*/client_{client}-*.safetensors"
    yield Trace(client, "what its model says", said)
    for images in _IMAGES if gone.natural else _roles(line):
        files = f"{folder}/logits/*/client_*-{images}.safetensors"
        yield Trace(client, "what models say about its samples", files)


def _roles(line: LocalLine) -> list[str]:
    """Return the roles of clients' samples that models do not train on."""
    fractions = {"aggregator": line.aggregator_fraction, "validation": line.validation}
    return [role for role, fraction in fractions.items() if fraction]


#: Folders that have a file of each client, and what it is.
_OWN_FILES = {"moments": "moments of its features", "generators": "its generator"}
#: Folders of images that are generated with what clients send.
_IMAGES_OF_CLIENTS = ("generated", "synthesised")


def _own_file(gone: Forgotten, folder: str) -> Trace | None:
    """Return the trace of a client in a folder that has a file of each client; None in others."""
    contains = _OWN_FILES.get(folder.split("/")[1])
    files = f"{folder}/client_{gone.client}.safetensors"
    return (contains and Trace(gone.client, contains, files)) or None


def _of_one_shot(gone: Forgotten, folder: str, line: OneShotLine) -> Iterator[Trace]:
    """Yield the traces of a client in what is made of all clients, or of all but the forgotten."""
    images = folder.split("/")[1] in _IMAGES_OF_CLIENTS
    if images and gone.client not in line.forget:
        yield Trace(gone.client, "generated with what it sent", folder)
    elif images:
        return
    elif gone.client not in line.forget:
        yield Trace(gone.client, "learnt from its model and samples", folder)
    elif gone.natural and _learns_from_set_aside(line):
        yield Trace(gone.client, "learnt from samples set aside, also its own", folder)
    else:
        weighted = "scores weighted by its label counts"
        yield Trace(gone.client, weighted, f"{folder}/metrics")


def _learns_from_set_aside(line: OneShotLine) -> bool:
    """Whether a line learns from held-out samples, or from those of the server."""
    training = line.aggregator_training
    if training is not None and training.name == "proxy":
        return True
    if line.distillation is None or learns_from_moments(line):
        return False
    assert line.server is not None, "checked by OneShotLine"
    return isinstance(line.public, HeldOut | CoreSamples) or needs_validation(line.server)


def _same_files(data: Data, other: Data) -> bool:
    """Whether two data sets are read from the same files, whatever is taken of them."""
    return (data.name, getattr(data, "folder", None)) == (
        other.name,
        getattr(other, "folder", None),
    )


def _partition_of(line: AnyLine) -> str:
    """Return an id of the partition, whatever the roles of samples."""
    if isinstance(line, OneShotLine):
        line = local_line(line)
    if isinstance(line, LocalLine):
        line = line.model_copy(update={"aggregator_fraction": 0.0})
    return partition_id(line.model_copy(update={"validation": 0.0}))
