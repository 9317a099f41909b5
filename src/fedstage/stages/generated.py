"""Stage `generated`: the server generates images with the clients' generators."""

from pathlib import Path

import torch

from fedstage.algorithm.exchange.traffic import payload_bytes
from fedstage.algorithm.one_shot.generators import draw_labels, of_clients, shares
from fedstage.algorithm.one_shot.traffic import COUNT, ROUNDS_SCHEMA
from fedstage.data.partitions import HISTOGRAM_SCHEMA
from fedstage.randomness import torch_generator
from fedstage.results.figures.images import save_grid
from fedstage.settings.generators import Cvae
from fedstage.settings.one_shot import OneShotLine
from fedstage.stages.inputs import begin
from fedstage.storage.tables import save_rows
from fedstage.storage.tensors import load_tensors, save_tensors

LABELS = "label_counts"


def generated(
    *,
    line: Path,
    info: Path,
    generators: list[Path],
    output: Path,
    histogram: Path,
    picture: Path,
    rounds: Path,
) -> None:
    """Generate labelled images, with each generator as many as its client's share of samples.

    Parameters
    ----------
    generators : list of Path
        The members', in the order of clients.
    output : Path
        `images`, `labels` and the `clients` whose generators made them, as a data set's samples.
    histogram, picture : Path
        Output: the images of each client and class: their numbers, and one of each as PNG.
    rounds : Path
        Output: what travels, as the aggregator's table.
    """
    settings, device, dataset_info = begin(line, OneShotLine, info)
    assert isinstance(settings.generator, Cvae), "checked by the catalogue: clients train it"
    read = [load_tensors(path) for path in generators]
    numbers = shares([metadata["samples"] for _, metadata in read], settings.generator.samples)
    module = of_clients(settings.generator)
    made, labels, owners = [], [], []
    for (tensors, metadata), number in zip(read, numbers, strict=True):
        client = metadata["client"]
        generator = torch_generator(settings.seed, "generated", client)
        own = draw_labels(tensors[LABELS], number, generator)
        weights = {
            name.removeprefix("decoder."): value
            for name, value in tensors.items()
            if name != LABELS
        }
        made.append(
            module.sample(settings.generator, weights, own, dataset_info, generator, device)
        )
        labels.append(own)
        owners.append(torch.full((number,), client))
    images, classes, clients = torch.cat(made), torch.cat(labels), torch.cat(owners)
    save_tensors(output, {"images": images, "labels": classes, "clients": clients})
    save_rows(histogram, count(clients, classes), HISTOGRAM_SCHEMA)
    save_grid(picture, images, clients, classes, int(dataset_info["classes"]))
    sizes = [payload_bytes(tensors) for tensors, _ in read]
    save_rows(rounds, traffic(sizes, int(dataset_info["classes"])), ROUNDS_SCHEMA)


def count(clients: torch.Tensor, labels: torch.Tensor) -> list[dict[str, int | str]]:
    """Return the number of images of each client and label that occur, sorted."""
    pairs, numbers = torch.unique(torch.stack([clients, labels]), dim=1, return_counts=True)
    rows = zip(*pairs.tolist(), numbers.tolist(), strict=True)
    return [
        {"client": client, "role": "generated", "label": label, "samples": number}
        for client, label, number in rows
    ]


def traffic(sizes: list[int], classes: int) -> list[dict[str, int | str | float | None]]:
    """Return rows of what clients send: their generators and label counts, in bytes."""
    counts = COUNT * classes
    nothing: dict[str, int | str | float | None] = dict.fromkeys(ROUNDS_SCHEMA.names)
    both = {"round": 0, "participants": len(sizes), "bytes_down": 0}
    return [
        nothing | both | {"phase": phase, "bytes_up": up}
        for phase, up in (("generator", max(sizes) - counts), (LABELS, counts))
    ]
