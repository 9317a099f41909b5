"""``python -m fedstage.models.trial JSON``: build a model, and run a batch through it.

It is a process of its own, since a plan imports no torch, and a user's code may do anything.
"""

import json
import sys

from fedstage.errors import FedstageError
from fedstage.models.initialisation import initialise, try_model
from fedstage.models.loading import build
from fedstage.models.parts import freeze
from fedstage.randomness import torch_generator
from fedstage.settings.base import is_plugin
from fedstage.settings.models import InitialModel
from fedstage.settings.plugins import describe_error, line_of_plugin
from fedstage.settings.validation import validate
from fedstage.storage.yaml_files import load_project_plugins


def main(text: str) -> str:
    """Return what is wrong with the model in `settings` for samples of a shape, empty if nothing.

    `text` is JSON with `settings` (of `InitialModel`), `shape`, `classes`, and the number of
    samples in the smallest batch, `least`.
    """
    given = json.loads(text)
    try:
        load_project_plugins()
        settings = validate(InitialModel, given["settings"], "model")
        shape, key = tuple(given["shape"]), (settings.seed, "initial_model", 0)
        model = build(settings.model, shape, given["classes"], *key)
        initialise(model, torch_generator(*key, "weights"), is_plugin(settings.model))
        if settings.model.trainable:
            freeze(model, settings.model.trainable)
        try_model(model, settings.model, shape, given["classes"], given["least"])
    except FedstageError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - whatever a plugin's code raises
        return f"{line_of_plugin(error)}{describe_error(error)}"
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) or None)  # an empty text would be a fault, too
