"""Stage `client_logits`: what the model of one client, trained to the end, says about images."""

from pathlib import Path

from fedstage.algorithm.one_shot.client_models import ask
from fedstage.data.samples import read_images, read_info, read_line, read_public, read_samples
from fedstage.settings.lines import LocalLine
from fedstage.storage.tensors import save_tensors
from fedstage.training.devices import prepare


def client_logits(
    *,
    line: Path,
    model: Path,
    quantisation: str | None = None,
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
    quantisation : str, optional
        How the model is quantised, if it is: JSON.
    images : str
        ``validation`` or ``aggregator``: the samples of this role of all clients, in the order of
        the partition `clients`; otherwise `data` as a whole.
    info : Path
        Of the clients' data: public images are normalised as theirs.
    """
    settings = read_line(line, LocalLine)
    device = prepare(settings.numerics)
    about = read_info(info)
    if clients is None:
        pixels = read_public(data, about, device)
    else:
        pixels, _ = read_images(data, read_samples(clients, images), device)
    said, notes = ask(settings, model, quantisation, pixels, about)
    kept = {name: notes[name] for name in ("client", "samples")}
    save_tensors(output, {"logits": said}, kept)
