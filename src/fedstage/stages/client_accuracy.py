"""Stage `client_accuracy`: how accurate a line's main model is for each client and class."""

from pathlib import Path

import torch

from fedstage.data.label_counts import read_counts
from fedstage.data.samples import read_labelled, read_owned
from fedstage.results.clients.columns import CLIENTS_SCHEMA
from fedstage.results.clients.measures import of_classes, of_mixes, of_validation
from fedstage.results.scores import score
from fedstage.settings.lines import Line
from fedstage.stages.inputs import begin, load_model
from fedstage.storage.tables import save_rows
from fedstage.training.inference import compute_logits


def client_accuracy(
    *,
    line: Path,
    model: Path,
    data: Path,
    test: Path,
    info: Path,
    clients: Path,
    histogram: Path,
    output: Path,
) -> None:
    """Write a row for each client and kind of accuracy, and a row for each class.

    Parameters
    ----------
    model : Path
        The main model after the last round.
    data, test : Path
        Samples for training, some of them for validation, and for testing.
    """
    settings, device, dataset_info = begin(line, Line, info)
    trained = load_model(model, settings.model, dataset_info, device, settings.numerics)

    def logits_of(path: Path, chosen: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        samples, labels = read_labelled(path, chosen, device)
        return compute_logits(trained, samples, dataset_info, settings.numerics).cpu(), labels.cpu()

    rows = []
    if settings.validation:
        samples, owners = read_owned(clients, "validation")
        said, labels = logits_of(data, samples)
        rows += of_validation(said.argmax(1) == labels, owners)
    said, labels = logits_of(test, None)
    rows += [*of_mixes(score(said, labels), read_counts(histogram)), *of_classes(said, labels)]
    save_rows(output, rows, CLIENTS_SCHEMA)
