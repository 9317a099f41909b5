"""Models that are trained without federation: in 8 bits, their logits, and their scores."""

from collections.abc import Iterator
from pathlib import Path

import torch

from fedstage.algorithm.measures.metrics import METRICS_SCHEMA
from fedstage.algorithm.measures.model_metrics import mean_metrics
from fedstage.algorithm.one_shot import prototype_learning, unknown_class
from fedstage.algorithm.one_shot.client_models import (
    compute_client_logits,
    example,
    library,
    of_classes,
)
from fedstage.data.samples import read_images, read_labelled, read_samples
from fedstage.errors import FedstageError
from fedstage.models.loading import fill_model, new_model, state_of
from fedstage.plan.inputs import (
    ClientLogitsInputs,
    LocalEvaluationInputs,
    LocalModelInputs,
    QuantisedModelInputs,
)
from fedstage.protocol.digests import canonical, own_key
from fedstage.protocol.one_shot import client_model, client_of
from fedstage.protocol.privacy import example_privacy
from fedstage.randomness import torch_generator
from fedstage.settings.recipes import LocalRecipe
from fedstage.stages.inputs import begin, load_model, read_scored, read_unlabelled
from fedstage.storage.tables import save_rows
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.training.batches import client_batches, noisy_batches
from fedstage.training.images import unit_of
from fedstage.training.loop import train
from fedstage.training.losses import client_loss
from fedstage.training.passes import normalised_batches


def local_model(
    recipe: LocalRecipe, read: LocalModelInputs[Path], *, who: str, output: Path
) -> None:
    """Train a model on the training samples of one client, of all clients, or of the server.

    Parameters
    ----------
    who : str
        ``client_3``, ``pooled`` or ``core``.

    Raises
    ------
    FedstageError
        If training diverges; the message names the client and the step.
    """
    device, info = begin(recipe, read.info)
    client = client_of(who)
    samples = None if read.clients is None else read_samples(read.clients, "train", client)
    images, labels = read_labelled(read.data, samples, device, info)
    architecture = recipe.model if client is None else client_model(recipe, client)
    model = load_model(read.start, architecture, info, device, recipe.numerics)
    name: str | int = who if client is None else client
    key = (recipe.seed, "local_model", name)
    loss = client_loss(recipe.client.loss, int(info["classes"]), device)
    objective = None
    if recipe.prototypes is not None:
        generator = torch_generator(*key, "views")
        objective = prototype_learning.objective(
            recipe.prototypes, info, recipe.numerics, generator
        )
    if recipe.unknown is not None:
        generator, unit = torch_generator(*key, "outliers"), unit_of(images, info)
        means = unknown_class.Means(loss, recipe.numerics, generator, unit)
        objective = unknown_class.objective(recipe.unknown, means)
    how, noisy = example_privacy(recipe), None
    drawn = torch_generator(*key, "batches")
    batches = client_batches(len(images), recipe.client, drawn, private=how is not None)
    if how is not None:
        noise = torch_generator(recipe.seed, own_key(recipe), "local_model", name, "noise")
        noisy = noisy_batches(how, recipe.client.batch_size, len(images), noise)
    outcome = train(
        model,
        images,
        labels,
        batches,
        recipe.client,
        loss,
        info,
        torch_generator(*key, "augmentation"),
        recipe.numerics,
        objective=objective,
        noisy=noisy,
        whose=(whose := f"local model, {who.replace('_', ' ')}: "),
    )
    if outcome.diverged_at is not None:
        raise FedstageError(
            f"{whose}the loss is not finite at step {outcome.diverged_at}; "
            f"lower client.learning_rate = {recipe.client.learning_rate} or set client.clip_norm"
        )
    metadata = {
        "client": name,
        "samples": len(images),
        "steps": outcome.steps,
        "loss": outcome.loss,
    }
    save_tensors(output, state_of(model), metadata)


#: Number of a client's training samples that give ranges of activations, or all if it has fewer.
CALIBRATED_ON = 256


def quantised_model(recipe: LocalRecipe, read: QuantisedModelInputs[Path], *, output: Path) -> None:
    """Quantise the model after its training, with ranges of activations from training samples.

    The file has the tensors that a server sends on.
    """
    device, info = begin(recipe, read.info)
    weights, metadata = load_tensors(read.model)
    client = metadata["client"]
    network = new_model(client_model(recipe, client), info, device)
    fill_model(network, weights, read.model)
    own = read_samples(read.clients, "train", client)
    generator = torch_generator(recipe.seed, "quantised_model", client)
    order = torch.randperm(len(own), generator=generator)
    chosen = own[order[:CALIBRATED_ON]]
    images, _ = read_images(read.data, chosen, device)
    batches = normalised_batches(images, info)
    tensors = library().quantise(network, example(images), batches)
    described = {
        "client": client,
        "samples": metadata["samples"],
        "calibrated_on": len(chosen),
        "ranges": library().ranges(tensors),
        "quantisation": canonical(recipe.quantisation),
    }
    save_tensors(output, tensors, described)


def client_logits(
    recipe: LocalRecipe,
    read: ClientLogitsInputs[Path],
    *,
    images: str,
    output: Path,
) -> None:
    """Compute logits [n, classes] once; every aggregator, teacher and evaluation reads them.

    Parameters
    ----------
    images : str
        ``validation`` or ``aggregator``: the samples of this role of all clients, in the order of
        the partition `clients`; otherwise `data` as a whole.
    output : Path
        Its metadata hold the client and the number of its training samples.
    """
    device, info = begin(recipe, read.info)
    samples = read_unlabelled(read, images, info, device)
    logits, metadata = compute_client_logits(recipe, read.model, samples, info)
    save_tensors(output, {"logits": logits}, {key: metadata[key] for key in ("client", "samples")})


def local_evaluation(
    recipe: LocalRecipe,
    read: LocalEvaluationInputs[Path],
    *,
    rounds: int,
    role: str,
    who: str,
    output: Path,
) -> None:
    """Write one row of metrics: the unweighted mean over models on the common data.

    Parameters
    ----------
    rounds : int
        The round of the row: this many rounds have as many local epochs as the training.
    who : str
        Whose models they are: ``each_client``, a single client such as ``client_3``, or ``pooled``.
    """
    device, info = begin(recipe, read.info)
    images, labels, counts, owners = read_scored(recipe, read, role, device, info)
    alone = len(read.models) == 1

    def models() -> Iterator[tuple[int | None, torch.Tensor]]:
        for client, path in enumerate(read.models):
            logits, _ = compute_client_logits(recipe, path, images, info)
            yield None if alone else client, of_classes(logits, info).cpu()

    row = {
        "round": rounds,
        "evaluated": who,
        "role": role,
        **mean_metrics(models(), labels, counts, owners),
        "bytes_up": 0,
        "bytes_down": 0,
        "participants": recipe.clients,
        "training_loss": None,
    }
    save_rows(output, [row], METRICS_SCHEMA)
