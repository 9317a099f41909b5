"""Stage `client_logits`: the logits of one client's fully trained model on images."""

from pathlib import Path

from fedstage.algorithm.one_shot.client_models import compute_client_logits
from fedstage.plan.inputs import ClientLogitsInputs
from fedstage.settings.recipes import LocalRecipe
from fedstage.stages.inputs import begin, read_unlabelled
from fedstage.storage.tensors import save_tensors


def client_logits(
    recipe: LocalRecipe,
    read: ClientLogitsInputs[Path],
    *,
    quantisation: str | None = None,
    images: str,
    output: Path,
) -> None:
    """Compute logits [n, classes] once; every aggregator, teacher and evaluation reads them.

    Parameters
    ----------
    quantisation : str, optional
        The quantisation of the model, if any, as JSON.
    images : str
        ``validation`` or ``aggregator``: the samples of this role of all clients, in the order of
        the partition `clients`; otherwise `data` as a whole.
    output : Path
        Its metadata hold the client and the number of its training samples.
    """
    device, info = begin(recipe, read.info)
    samples = read_unlabelled(read.data, read.clients, images, info, device)
    logits, metadata = compute_client_logits(recipe, read.model, quantisation, samples, info)
    save_tensors(output, {"logits": logits}, {key: metadata[key] for key in ("client", "samples")})
