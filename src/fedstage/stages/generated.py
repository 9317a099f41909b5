"""Stage `generated`: the server generates images with the clients' generators."""

from pathlib import Path
from typing import NamedTuple

import torch

from fedstage.algorithm.exchange.traffic import COUNT, payload_bytes
from fedstage.algorithm.one_shot.generators import draw_labels, of_clients, shares
from fedstage.algorithm.one_shot.generators.distilled_decoder import distil, even_labels
from fedstage.algorithm.one_shot.traffic import ROUNDS_SCHEMA, before_rounds
from fedstage.data.label_counts import count_generated
from fedstage.data.partitions import HISTOGRAM_SCHEMA
from fedstage.plan.inputs import GeneratedInputs
from fedstage.randomness import torch_generator
from fedstage.settings.generators import Cvae, OfClients
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.stages import Made
from fedstage.stages.inputs import Info, begin
from fedstage.storage.tables import save_rows
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.training.image_grid import save_grid
from fedstage.weights import Weights

LABELS = "label_counts"
NOBODY = -1  # in place of a client


def generated(recipe: OneShotRecipe, read: GeneratedInputs[Path], made: Made) -> None:
    """Generate labelled images with the clients' generators, or one distilled from them.

    Parameters
    ----------
    output : Path
        `images`, `labels` and the `clients` whose generators made them, as a data set's samples.
    histogram, picture : Path
        Output: the images of each client and class: their numbers, and one of each as PNG.
    rounds : Path
        Output: the traffic, with the columns of the aggregator's table.
    """
    device, info = begin(recipe, read.info)
    generator = recipe.generator
    assert isinstance(generator, OfClients), "checked by the catalogue: clients train it"
    opened = [load_tensors(path) for path in read.generators]
    sent = [Sent(metadata["client"], metadata["samples"], *apart(own)) for own, metadata in opened]
    if isinstance(generator, Cvae) and generator.distilled is not None:
        images, classes, clients = of_one(recipe, generator, sent, info, device)
    else:
        images, classes, clients = of_each(recipe, generator, sent, info, device)
    save_tensors(made["output"], {"images": images, "labels": classes, "clients": clients})
    numbers = count_generated(clients.tolist(), classes.tolist())
    save_rows(made["histogram"], numbers, HISTOGRAM_SCHEMA)
    row = "" if NOBODY in clients else "client"
    save_grid(made["picture"], images, clients, classes, info["class_names"], row)
    largest, counts = max(payload_bytes(own) for own, _ in opened), COUNT * int(info["classes"])
    phases = {"generator": (largest - counts, 0), LABELS: (counts, 0)}
    save_rows(made["rounds"], before_rounds(phases, len(opened)), ROUNDS_SCHEMA)


class Sent(NamedTuple):
    """What a client has sent: its decoder, and label counts [classes]."""

    client: int
    samples: int
    decoder: Weights
    counts: torch.Tensor


#: Images uint8 [n, C, H, W], labels int64 [n], and the client whose decoder drew each, int64 [n].
Drawn = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def apart(tensors: Weights) -> tuple[Weights, torch.Tensor]:
    """Return a client's decoder and label counts."""
    rest = {name: value for name, value in tensors.items() if name != LABELS}
    return {name.removeprefix("decoder."): value for name, value in rest.items()}, tensors[LABELS]


def of_each(
    recipe: OneShotRecipe, generator: OfClients, sent: list[Sent], info: Info, device: torch.device
) -> Drawn:
    """Draw with each generator its client's share of the images."""
    module = of_clients(generator)
    made, labels, owners = [], [], []
    numbers = shares([client.samples for client in sent], generator.samples)
    for client, number in zip(sent, numbers, strict=True):
        random = torch_generator(recipe.seed, "generated", client.client)
        own = draw_labels(client.counts, number, random)
        made.append(module.sample(generator, client.decoder, own, info, random, device))
        labels.append(own)
        owners.append(torch.full((number,), client.client))
    return torch.cat(made), torch.cat(labels), torch.cat(owners)


def of_one(
    recipe: OneShotRecipe, generator: Cvae, sent: list[Sent], info: Info, device: torch.device
) -> Drawn:
    """Draw all images, of "client" -1, with the decoder distilled from the clients' decoders."""
    assert generator.distilled is not None, "its caller has looked"
    counts = [client.counts for client in sent]
    decoders = {client.client: client.decoder for client in sent}
    key = (recipe.seed, "distilled_decoder")
    decoder = distil(generator, generator.distilled, decoders, counts, info, key, device)
    random = torch_generator(recipe.seed, "generated", NOBODY)
    labels = even_labels(counts, generator.samples, random)
    images = of_clients(generator).sample(generator, decoder, labels, info, random, device)
    return images, labels, torch.full((len(labels),), NOBODY)
