"""Stage `client_accuracy`: how accurate a recipe's main model is for each client and class."""

from pathlib import Path

import torch

from fedstage.algorithm.measures.clients import (
    of_classes,
    of_mixes,
    of_own,
)
from fedstage.algorithm.measures.metrics import CLIENTS_SCHEMA, TEST, VALIDATION
from fedstage.algorithm.measures.scores import score
from fedstage.data.label_counts import read_counts
from fedstage.data.samples import read_labelled, read_owned, read_test_clients
from fedstage.plan.inputs import ClientAccuracyInputs
from fedstage.settings.recipes import Recipe
from fedstage.stages.inputs import begin, load_model
from fedstage.storage.tables import save_rows
from fedstage.training.passes import compute_logits


def client_accuracy(recipe: Recipe, read: ClientAccuracyInputs[Path], *, output: Path) -> None:
    """Write a row for each client and kind of accuracy, and a row for each class.

    Clients have test samples of their own where the partition is natural and the data set has the
    clients of its test samples. Elsewhere the accuracy on their own mix of classes is an estimate.
    """
    device, info = begin(recipe, read.info)
    trained = load_model(read.model, recipe.model, info, device, recipe.numerics)

    def logits_of(path: Path, chosen: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        samples, labels = read_labelled(path, chosen, device)
        return compute_logits(trained, samples, info, recipe.numerics).cpu(), labels.cpu()

    rows = []
    if recipe.validation:
        samples, owners = read_owned(read.clients, "validation")
        predicted, labels = logits_of(read.data, samples)
        rows += of_own(VALIDATION, predicted.argmax(1) == labels, owners, recipe.clients)
    predicted, labels = logits_of(read.test, None)
    tested = read_test_clients(read.test, recipe.partition.name, recipe.clients)
    if tested is not None:
        rows += of_own(TEST, predicted.argmax(1) == labels, tested, recipe.clients)
    else:
        rows += of_mixes(score(predicted, labels), read_counts(read.histogram))
    save_rows(output, [*rows, *of_classes(predicted, labels)], CLIENTS_SCHEMA)
