"""Stage `quantised_model`: a client's model in 8 bits, calibrated on the client's own samples."""

from pathlib import Path

import torch

from fedstage.algorithm.one_shot.client_models import example, library
from fedstage.data.samples import (
    fill_model,
    new_model,
    read_images,
    read_info,
    read_line,
    read_samples,
)
from fedstage.plan.sharing import canonical, client_model
from fedstage.randomness import torch_generator
from fedstage.settings.lines import LocalLine
from fedstage.settings.quantisation import Int8
from fedstage.settings.validation import validate_json
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.training.devices import prepare
from fedstage.training.inference import normalised_batches


def quantised_model(
    *,
    line: Path,
    quantisation: str,
    model: Path,
    data: Path,
    info: Path,
    clients: Path,
    output: Path,
) -> None:
    """Quantise the model after its training, with ranges of activations from training samples.

    The tensors of the file are what a server sends on.

    Parameters
    ----------
    quantisation : str
        How, and how many samples calibrate: JSON.
    clients : Path
        The partition: which samples are the client's own.
    """
    settings = read_line(line, LocalLine)
    how = validate_json(Int8, quantisation, "--quantisation")
    device, about = prepare(settings.numerics), read_info(info)
    weights, notes = load_tensors(model)
    client = notes["client"]
    network = new_model(client_model(settings, client), about, device)
    fill_model(network, weights, model)
    own = read_samples(clients, how.calibration.on, client)
    chosen = _drawn(own, how.calibration.samples, settings.seed, client)
    images, _ = read_images(data, chosen, device)
    batches = normalised_batches(images, about)
    tensors = library().quantise(network, how, example(images), batches)
    kept = {name: notes[name] for name in ("client", "samples")}
    ranges = library().ranges(tensors)
    calibration = {"calibrated_on": len(chosen), "ranges": ranges}
    save_tensors(output, tensors, kept | calibration | {"quantisation": canonical(how)})


def _drawn(samples: torch.Tensor, number: int, seed: int, client: int) -> torch.Tensor:
    """Return so many of the client's samples, or all where it has fewer."""
    generator = torch_generator(seed, "quantised_model", client)
    return samples[torch.randperm(len(samples), generator=generator)[:number]]
