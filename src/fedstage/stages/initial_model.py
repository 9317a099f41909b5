"""Stage `initial_model`: draw the weights that a global model starts from."""

from pathlib import Path

from fedstage.data.folder import default_folder
from fedstage.models.build import build
from fedstage.models.initialisation import initialise
from fedstage.models.pretrained import LAYOUTS, take_weights
from fedstage.randomness import torch_generator
from fedstage.settings.initial_model import InitialModel
from fedstage.settings.validation import validate_json
from fedstage.storage.files import load_json
from fedstage.storage.tensors import save_tensors


def initial_model(
    *, settings: str, group: int, info: Path, folder: Path | None = None, output: Path
) -> None:
    """Draw the weights that the global model of a group starts from.

    By setting all layers but the last have the weights of a file instead.

    Parameters
    ----------
    settings : str
        `fedstage.settings.initial_model.InitialModel` as a JSON object.
    group : int
        Number of the global model, from 0; every group starts from its own weights.
    info : Path
        JSON file of the data set, with `shape` (of an image [C, H, W]) and `classes`.
    folder : Path, optional
        The data folder, where weights of a file are; by default that of FEDSTAGE_DATA.
    output : Path
        Safetensors file for the model's state dict.

    Raises
    ------
    FedstageError
        If the settings are not valid, the samples or classes are not what the model is for, or a
        file of weights is missing or another one.
    """
    checked = validate_json(InitialModel, settings, "--settings")
    data = load_json(info)
    model = build(checked.model, tuple(data["shape"]), data["classes"])
    initialise(model, torch_generator(checked.seed, "initial_model", group, "weights"))
    weights = getattr(checked.model, "weights", None)
    if weights is not None:
        take_weights(model, weights, folder or default_folder(), LAYOUTS[checked.model.name])
    save_tensors(output, model.state_dict())
