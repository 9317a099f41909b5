"""Stage `client_logits`: what the model of one client, trained to the end, says about images."""

from pathlib import Path

from fedstage.artefacts import load_tensors, save_tensors
from fedstage.config import LocalLine
from fedstage.engine.devices import prepare
from fedstage.engine.inference import compute_logits
from fedstage.lines import client_model
from fedstage.reading import (
    fill_model,
    new_model,
    read_images,
    read_info,
    read_line,
    read_public,
    read_samples,
)


def client_logits(
    *,
    line: Path,
    model: Path,
    images: str,
    data: Path,
    info: Path,
    clients: Path | None = None,
    output: Path,
) -> None:
    """Compute logits [n, classes] once; every aggregator, teacher and evaluation reads them.

    The file's notes say whose they are.

    Parameters
    ----------
    images : str
        ``validation`` or ``aggregator``: the samples of this role of all clients, in the order of
        the partition `clients`; otherwise `data` as a whole.
    info : Path
        Of the clients' data: public images are normalised as theirs.
    """
    settings = read_line(line, LocalLine)
    device = prepare(settings.numerics)
    about = read_info(info)
    weights, notes = load_tensors(model)
    if clients is None:
        pixels = read_public(data, about, device)
    else:
        pixels, _ = read_images(data, read_samples(clients, images), device)
    architecture = client_model(settings, notes["client"])
    network = new_model(architecture, about, device, settings.numerics)
    fill_model(network, weights, model)
    said = compute_logits(network, pixels, about, settings.numerics)
    kept = {name: notes[name] for name in ("client", "samples")}
    save_tensors(output, {"logits": said}, kept)
