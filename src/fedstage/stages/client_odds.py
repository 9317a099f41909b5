"""Stage `client_odds`: how likely each client is the source of a public image."""

from pathlib import Path

import torch

from fedstage.data.samples import read_public
from fedstage.models.discriminator import new_discriminator
from fedstage.models.loading import fill_model
from fedstage.randomness import torch_generator
from fedstage.settings.ensembles import Odds
from fedstage.settings.lines import Line
from fedstage.stages.inputs import begin
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.training.inference import compute_logits


def client_odds(
    *,
    line: Path,
    discriminators: list[Path],
    public: Path,
    info: Path,
    output: Path,
) -> None:
    """Compute log odds [clients, n] of public images.

    Parameters
    ----------
    discriminators : list of Path
        What clients have sent, in their order.
    """
    settings, device, dataset_info = begin(line, Line, info)
    assert isinstance(settings.ensemble, Odds), "of such a line alone the graph has this stage"
    images = read_public(public, dataset_info, device)
    shape, width = tuple(dataset_info["shape"]), settings.ensemble.discriminator.width
    judge = new_discriminator(shape, width, torch_generator(0)).to(device)
    said = []
    for path in discriminators:
        fill_model(judge, load_tensors(path)[0], path)
        said.append(compute_logits(judge, images, dataset_info, settings.numerics))
    save_tensors(output, {"log_odds": torch.stack(said)})
