"""Where the files of data sets, partitions and participation are."""

from fedstage.plan.identity import data_id, initial_id, participation_id, partition_id
from fedstage.plan.one_shot_sharing import local_line
from fedstage.plan.results import RESULTS
from fedstage.plan.rounds import block_of
from fedstage.settings.data import Data
from fedstage.settings.lines import Line, LocalLine
from fedstage.settings.models import Model
from fedstage.settings.one_shot import OneShotLine

#: Parts of a data set with files of their own.
#: Folders of generated images.
_GENERATED = ("generated", "synthesised")
_PARTS = ("test", "test_own", "held_out", "server_validation")


def data_file(data: Data, part: str) -> str:
    """Return a data set's file.

    `part` is ``train``, ``test``, ``test_own``, ``held_out``, ``server_validation`` or ``info``.
    """
    suffix = "json" if part == "info" else "safetensors"
    return f"{RESULTS}/data/{data_id(data)}/{part}.{suffix}"


def samples_file(line: Line | LocalLine | OneShotLine, samples: str) -> str:
    """Return the file of the samples that logits are computed on.

    `samples` is a part of the clients' data set, a role among its training samples (``validation``,
    ``aggregator``), the server's ``core``, ``FOLDER.NAME`` of generated images, or the id of
    another data set, whose training samples are meant.
    """
    if samples in _PARTS:
        return data_file(line.data, samples)
    if samples in ("validation", "aggregator"):
        return data_file(line.data, "train")
    if samples == "core":
        return core_file(line)
    folder, _, name = samples.partition(".")
    if name and folder in _GENERATED:
        return f"{RESULTS}/{folder}/{name}/train.safetensors"
    return f"{RESULTS}/data/{samples}/train.safetensors"


def clients_table(line: Line | LocalLine) -> str:
    """Return the partition: a row a sample with its client and role."""
    return f"{_partition_folder(line)}/clients.parquet"


def label_histogram(line: Line | LocalLine) -> str:
    """Return the label counts of every client and role."""
    return f"{_partition_folder(line)}/label_histogram.parquet"


def core_file(line: Line | LocalLine | OneShotLine) -> str:
    """Return the labelled samples that the server has of its own."""
    assert line.core is not None, "checked by the line: who reads a core has one"
    if line.core.samples == "all":
        return data_file(line.data, "train")
    shared = local_line(line) if isinstance(line, OneShotLine) else line
    return f"{_partition_folder(shared)}/core.safetensors"


def _partition_folder(line: Line | LocalLine) -> str:
    return f"{RESULTS}/partitions/{partition_id(line)}"


def participation_table(line: Line, round: int) -> str:
    """Return the table of the client in each slot of `round`."""
    rounds = "-".join(f"{end:04d}" for end in block_of(round))
    return f"{RESULTS}/participation/{participation_id(line)}/rounds_{rounds}.parquet"


def initial_model(data: Data, model: Model, seed: int, group: int) -> str:
    """Return w*_{0,k}, which every method of a seed shares."""
    return f"{RESULTS}/initial_models/{initial_id(data, model, seed)}/group_{group}.safetensors"


def core_inputs(line: Line | LocalLine) -> dict[str, str]:
    """Return what the server's own samples are taken from."""
    return {
        "data": data_file(line.data, "train"),
        "clients": clients_table(line),
        "info": data_file(line.data, "info"),
    }


def participation_inputs(line: Line) -> dict[str, str | list[str]]:
    """Return what participants are drawn by: the clients' samples, or nothing."""
    return {"histogram": label_histogram(line) if line.participation == "by_samples" else []}
