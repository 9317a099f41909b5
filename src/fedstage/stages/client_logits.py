"""Stage `client_logits`: the logits of one client's model, trained to the end, on images."""

from pathlib import Path

from fedstage.algorithm.one_shot.client_models import compute_client_logits
from fedstage.settings.lines import LocalLine
from fedstage.stages.inputs import begin, read_unlabelled
from fedstage.storage.tensors import save_tensors


def client_logits(
    *,
    line: Path,
    info: Path,
    model: Path,
    quantisation: str | None = None,
    images: str,
    data: Path,
    clients: Path | None = None,
    output: Path,
) -> None:
    """Compute logits [n, classes] once; every aggregator, teacher and evaluation reads them.

    Parameters
    ----------
    quantisation : str, optional
        How the model is quantised, if it is: JSON.
    images : str
        ``validation`` or ``aggregator``: the samples of this role of all clients, in the order of
        the partition `clients`; otherwise `data` as a whole.
    info : Path
        Info of the clients' data, by which public images are normalised, too.
    output : Path
        Its metadata hold the client and the number of its training samples.
    """
    settings, device, dataset_info = begin(line, LocalLine, info)
    samples = read_unlabelled(data, clients, images, dataset_info, device)
    logits, metadata = compute_client_logits(settings, model, quantisation, samples, dataset_info)
    save_tensors(output, {"logits": logits}, {key: metadata[key] for key in ("client", "samples")})
