"""Stage `initial_model`: draw the weights that a global model starts from."""

from pathlib import Path

from fedstage.artefacts import save_tensors
from fedstage.files import load_json
from fedstage.models.build import build
from fedstage.models.initialisation import initialise
from fedstage.models.settings import InitialModel
from fedstage.randomness import torch_generator
from fedstage.validation import validate_json


def initial_model(*, settings: str, group: int, info: Path, output: Path) -> None:
    """Draw the weights that the global model of a group starts from.

    Parameters
    ----------
    settings : str
        `fedstage.models.settings.InitialModel` as a JSON object.
    group : int
        Number of the global model, from 0; every group starts from its own weights.
    info : Path
        JSON file of the data set, with `shape` (of an image [C, H, W]) and `classes`.
    output : Path
        Safetensors file for the model's state dict.

    Raises
    ------
    FedstageError
        If the settings are not valid, or the samples or classes are not what the model is for.
    """
    checked = validate_json(InitialModel, settings, "--settings")
    data = load_json(info)
    model = build(checked.model, tuple(data["shape"]), data["classes"])
    initialise(model, torch_generator(checked.seed, "initial_model", group, "weights"))
    save_tensors(output, model.state_dict())
