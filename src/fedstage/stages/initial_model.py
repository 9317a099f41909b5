"""Stage `initial_model`: draw the weights that a global model starts from."""

from pathlib import Path

from fedstage.data.folder import default_folder
from fedstage.models.heads import body_of
from fedstage.models.initialisation import initialise, try_model
from fedstage.models.loading import build
from fedstage.models.pretrained import LAYOUTS, take_weights
from fedstage.plan.inputs import InitialModelInputs
from fedstage.randomness import torch_generator
from fedstage.settings.base import is_plugin
from fedstage.settings.models import InitialModel, Pretrained
from fedstage.storage.files import load_json
from fedstage.storage.tensors import save_tensors


def initial_model(
    recipe: InitialModel,
    read: InitialModelInputs[Path],
    *,
    group: int,
    folder: Path | None = None,
    output: Path,
) -> None:
    """Draw the weights that the global model of a group starts from.

    With the setting `weights`, all layers but the last are taken from a file instead.

    Parameters
    ----------
    group : int
        Number of the global model, from 0; every group starts from its own weights.
    folder : Path, optional
        The data folder with files of weights; by default the variable FEDSTAGE_DATA.

    Raises
    ------
    FedstageError
        If the model does not take the data set's samples, or a plugin's model returns no logits for
        them.
    """
    dataset_info = load_json(read.info)
    shape, classes = tuple(dataset_info["shape"]), dataset_info["classes"]
    key = (recipe.seed, "initial_model", group)
    model, own = build(recipe.model, shape, classes, *key), is_plugin(recipe.model)
    initialise(model, torch_generator(*key, "weights"), own)
    weights = getattr(recipe.model, "weights", None)
    if isinstance(weights, Pretrained) and not own:  # a plugin reads its weights itself
        take_weights(
            body_of(model), weights, folder or default_folder(), LAYOUTS[recipe.model.name]
        )
    if own:  # the plan has not tried it where the shape of samples was not known
        try_model(model, recipe.model, shape, classes, least=2)
    save_tensors(output, model.state_dict())
