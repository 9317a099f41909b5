"""Images that are generated, and what learns to tell them from clients' images.

For votes by odds (FedGO) there is a public generator, and each client has a discriminator. In
one-shot federated learning clients' generators make images, or the server does against clients'
models.
"""

from pathlib import Path
from typing import NamedTuple

import torch

from fedstage.algorithm.discriminators import draw, train_discriminator, train_generator
from fedstage.algorithm.exchange.traffic import COUNT, payload_bytes
from fedstage.algorithm.one_shot.generators import draw_labels, of_clients, of_server, shares
from fedstage.algorithm.one_shot.generators.adversarial import synthesise
from fedstage.algorithm.one_shot.generators.distilled_decoder import distil, even_labels
from fedstage.algorithm.one_shot.generators.world import World
from fedstage.algorithm.one_shot.traffic import ROUNDS_SCHEMA, before_rounds
from fedstage.data.partitions import HISTOGRAM_SCHEMA
from fedstage.data.samples import count_generated, read_public
from fedstage.errors import fault_of
from fedstage.models.image_generator import new_discriminator, new_image_generator
from fedstage.models.loading import fill_model, state_of
from fedstage.plan.inputs import (
    ClientDiscriminatorInputs,
    ClientOddsInputs,
    ClientsInputs,
    GeneratedInputs,
    PublicInputs,
    SynthesisedInputs,
)
from fedstage.protocol.one_shot import client_model, members
from fedstage.protocol.teaching import server_of
from fedstage.randomness import torch_generator
from fedstage.settings.ensembles import Odds
from fedstage.settings.generators import Adversarial, Cvae, OfClients
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import Recipe
from fedstage.stages import Made
from fedstage.stages.inputs import Info, begin, load_model, read_own
from fedstage.storage.tables import save_rows
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.training.image_grid import save_grid
from fedstage.training.passes import compute_logits
from fedstage.weights import Weights

_GRID = 10  # images in a row and in a column of a picture
LABELS = "label_counts"
NOBODY = -1  # in place of a client


def public_generator(recipe: Recipe, read: PublicInputs[Path], made: Made) -> None:
    """Train the generator that clients' discriminators are trained against.

    Parameters
    ----------
    picture : Path
        Output: some of the generated images.
    """
    device, info = begin(recipe, read.info)
    assert isinstance(recipe.ensemble, Odds), "of such a recipe alone the graph has this stage"
    images = read_public(read.public, info, device)
    assert isinstance(images, torch.Tensor), "checked by Recipe: samples are images"
    how = recipe.ensemble.generator
    key = (recipe.seed, "public_generator")
    net, loss = train_generator(how, images, info, key, recipe.numerics)
    save_tensors(made["output"], state_of(net), {"loss": loss})
    latent = draw(how, _GRID**2, torch_generator(*key, "picture"), device)
    with torch.no_grad():
        shown = net.eval()(latent).mul(255).round().to(torch.uint8).cpu()
    number = torch.arange(len(shown))
    save_grid(made["picture"], shown, number // _GRID, number % _GRID, [""] * _GRID)


def client_discriminator(
    recipe: Recipe, read: ClientDiscriminatorInputs[Path], *, client: int, output: Path
) -> None:
    """Train the client's discriminator on its training samples, against the server's generator.

    Raises
    ------
    FedstageError
        If training diverges; the message names the client.
    """
    device, info = begin(recipe, read.info)
    assert isinstance(recipe.ensemble, Odds), "of such a recipe alone the graph has this stage"
    images, _ = read_own(read, client, device, info)
    assert isinstance(images, torch.Tensor), "checked by Recipe: samples are images"
    how, shape = recipe.ensemble.generator, tuple(info["shape"])
    net = new_image_generator(shape, how.latent, how.width, torch_generator(0))
    fill_model(net, load_tensors(read.generator)[0], read.generator)
    with fault_of(f"client {client}"):
        judge, loss = train_discriminator(
            recipe.ensemble.discriminator,
            how,
            net.to(device),
            images,
            info,
            (recipe.seed, "client_discriminator"),
            client,
            recipe.numerics,
        )
    save_tensors(output, state_of(judge), {"client": client, "samples": len(images), "loss": loss})


def client_odds(recipe: Recipe, read: ClientOddsInputs[Path], *, output: Path) -> None:
    """Compute log odds [clients, n] of public images."""
    device, info = begin(recipe, read.info)
    assert isinstance(recipe.ensemble, Odds), "of such a recipe alone the graph has this stage"
    images = read_public(read.public, info, device)
    shape, width = tuple(info["shape"]), recipe.ensemble.discriminator.width
    judge = new_discriminator(shape, width, torch_generator(0)).to(device)
    odds = []
    for path in read.discriminators:
        fill_model(judge, load_tensors(path)[0], path)
        odds.append(compute_logits(judge, images, info, recipe.numerics))
    save_tensors(output, {"log_odds": torch.stack(odds)})


def client_generator(
    recipe: OneShotRecipe, read: ClientsInputs[Path], *, client: int, output: Path
) -> None:
    """Train the generator on the client's training samples; write the part that is sent.

    This is its `decoder.*` and the client's `label_counts`, int32 [classes].

    Raises
    ------
    FedstageError
        If training diverges; the message names the client and the step.
    """
    device, info = begin(recipe, read.info)
    assert isinstance(recipe.generator, OfClients), "checked by the catalogue: clients train it"
    images, labels = read_own(read, client, device, info)
    assert isinstance(images, torch.Tensor), "checked by OneShotRecipe: samples are images"
    key = (recipe.seed, "client_generator", client)
    module = of_clients(recipe.generator)
    with fault_of(f"client {client}"):
        weights, loss = module.train(recipe.generator, images, labels, info, key, recipe.numerics)
    counts = torch.bincount(labels.cpu(), minlength=int(info["classes"]))
    tensors = {f"decoder.{name}": value for name, value in weights.items()}
    tensors[LABELS] = counts.to(torch.int32)
    save_tensors(output, tensors, {"client": client, "samples": len(images), "loss": loss})


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
    sent = [read_sent(path) for path in read.generators]
    if isinstance(generator, Cvae) and generator.distilled is not None:
        images, classes, clients = of_one(recipe, generator, sent, info, device)
    else:
        images, classes, clients = of_each(recipe, generator, sent, info, device)
    save_tensors(made["output"], {"images": images, "labels": classes, "clients": clients})
    numbers = count_generated(clients.tolist(), classes.tolist())
    save_rows(made["histogram"], numbers, HISTOGRAM_SCHEMA)
    row = "" if NOBODY in clients else "client"
    save_grid(made["picture"], images, clients, classes, info["class_names"], row)
    largest = max(payload_bytes(client.decoder) for client in sent)
    phases = {"generator": (largest, 0), LABELS: (COUNT * int(info["classes"]), 0)}
    save_rows(made["rounds"], before_rounds(phases, len(sent)), ROUNDS_SCHEMA)


class Sent(NamedTuple):
    """What a client has sent: its decoder, and label counts [classes]."""

    client: int
    samples: int
    decoder: Weights
    counts: torch.Tensor


#: Images uint8 [n, C, H, W], labels int64 [n], and the client whose decoder drew each, int64 [n].
Drawn = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def read_sent(path: Path) -> Sent:
    """Read what `client_generator` has written."""
    tensors, metadata = load_tensors(path)
    counts = tensors.pop(LABELS)
    decoder = {name.removeprefix("decoder."): value for name, value in tensors.items()}
    return Sent(metadata["client"], metadata["samples"], decoder, counts)


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


def synthesised(recipe: OneShotRecipe, read: SynthesisedInputs[Path], made: Made) -> None:
    """Run DENSE or Co-Boosting.

    Parameters
    ----------
    output : Path
        `images` and `labels` of all epochs, as a data set's samples.
    histogram, picture : Path
        Output: the images of each class, of "client" -1; the first of each class in the first
        epochs, one row per epoch.
    student, weights : Path
        Output: the student trained along with them, and the weights [members] of the ensemble.
    """
    device, info = begin(recipe, read.info)
    generator = recipe.generator
    assert isinstance(generator, Adversarial), "checked by the catalogue: the server trains it"
    clients = members(recipe)
    teachers = [
        load_model(path, client_model(recipe, client), info, device, recipe.numerics)
        for client, path in zip(clients, read.models, strict=True)
    ]
    learner = load_model(read.start, recipe.student, info, device, recipe.numerics)
    found = synthesise(
        generator,
        of_server(generator, info),
        World(teachers, learner, info, recipe.numerics),
        server_of(recipe),
        (recipe.seed, "synthesised"),
    )
    images, labels = found.images.pixels.cpu(), found.images.labels.cpu()
    save_tensors(made["output"], {"images": images, "labels": labels})
    numbers = count_generated([NOBODY] * len(labels), labels.tolist())
    save_rows(made["histogram"], numbers, HISTOGRAM_SCHEMA)
    epochs = torch.arange(len(labels)) // generator.batch_size
    first = epochs < _GRID
    names = info["class_names"]
    save_grid(made["picture"], images[first], epochs[first] + 1, labels[first], names, "epoch")
    save_tensors(made["student"], state_of(learner), {"members": clients, "loss": found.loss})
    save_tensors(made["weights"], {"weights": found.weights}, {"members": clients})
