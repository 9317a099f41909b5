"""Stage `feature_moments`: a client's counts, sums and products of features by class."""

from pathlib import Path

from torch import nn

from fedstage.algorithm.one_shot.gaussian_heads import moments_of
from fedstage.data.samples import read_labelled, read_samples
from fedstage.models.prototypes import LAST
from fedstage.settings.one_shot import OneShotLine
from fedstage.stages.inputs import begin, load_model
from fedstage.storage.tensors import save_tensors
from fedstage.training.inference import compute_logits


def feature_moments(
    *,
    line: Path,
    client: int,
    data: Path,
    clients: Path,
    start: Path,
    info: Path,
    output: Path,
) -> None:
    """Measure the client's training samples, through all layers of a model but the last.

    Parameters
    ----------
    start : Path
        The model.
    """
    settings, device, dataset_info = begin(line, OneShotLine, info)
    owned = read_samples(clients, "train", client)
    images, labels = read_labelled(data, owned, device, dataset_info)
    model = load_model(
        start, settings.student or settings.model, dataset_info, device, settings.numerics
    )
    setattr(model, LAST, nn.Identity())
    features = compute_logits(model, images, dataset_info, settings.numerics)
    found = moments_of(features, labels.cpu(), int(dataset_info["classes"]))
    tensors = {"counts": found.counts.int(), "sums": found.sums.float()}
    tensors["products"] = found.products.float()
    save_tensors(output, tensors, {"client": client, "samples": len(labels)})
