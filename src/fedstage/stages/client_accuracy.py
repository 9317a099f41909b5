"""Stage `client_accuracy`: how accurate a recipe's main model is for each client and class."""

from pathlib import Path

import torch

from fedstage.data.label_counts import read_counts
from fedstage.data.samples import read_labelled, read_owned
from fedstage.plan.inputs import ClientAccuracyInputs
from fedstage.results.clients.columns import CLIENTS_SCHEMA
from fedstage.results.clients.measures import of_classes, of_mixes, of_validation
from fedstage.results.scores import score
from fedstage.settings.recipes import Recipe
from fedstage.stages.inputs import begin, load_model
from fedstage.storage.tables import save_rows
from fedstage.training.inference import compute_logits


def client_accuracy(recipe: Recipe, read: ClientAccuracyInputs[Path], *, output: Path) -> None:
    """Write a row for each client and kind of accuracy, and a row for each class."""
    device, info = begin(recipe, read.info)
    trained = load_model(read.model, recipe.model, info, device, recipe.numerics)

    def logits_of(path: Path, chosen: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        samples, labels = read_labelled(path, chosen, device)
        return compute_logits(trained, samples, info, recipe.numerics).cpu(), labels.cpu()

    rows = []
    if recipe.validation:
        samples, owners = read_owned(read.clients, "validation")
        predicted, labels = logits_of(read.data, samples)
        rows += of_validation(predicted.argmax(1) == labels, owners)
    predicted, labels = logits_of(read.test, None)
    rows += [
        *of_mixes(score(predicted, labels), read_counts(read.histogram)),
        *of_classes(predicted, labels),
    ]
    save_rows(output, rows, CLIENTS_SCHEMA)
