"""Stage `features`: the samples of a data set as a frozen encoder sees them."""

import hashlib
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import torch

from fedstage.errors import FedstageError
from fedstage.models.encoders import digest_of, encode, frozen_encoder
from fedstage.plan.inputs import FeaturesInputs
from fedstage.protocol.digests import as_json, canonical
from fedstage.settings.data import DataOption, Features
from fedstage.stages import Made
from fedstage.storage.files import load_json, save_json
from fedstage.storage.raw_files import check_planned, default_folder
from fedstage.storage.tensors import load_tensors, map_tensors, save_tensors
from fedstage.training.devices import prepare

_PART = 10_000  # samples whose features are kept if the job is interrupted


def features(recipe: DataOption, read: FeaturesInputs[Path], made: Made) -> None:
    """Write the files of `dataset` with features float32 [n, d] in place of samples.

    Parameters
    ----------
    info : Path
        Output: as of `dataset`, with the SHA-256 of the encoder's weights.
    """
    chosen, folder = recipe.data, default_folder()
    assert isinstance(chosen, Features), "of such data alone the graph has this stage"
    device = prepare(chosen.numerics)
    check_planned(chosen.encoder, folder, read.raw)
    encoder = frozen_encoder(chosen.encoder, folder)
    folder_of_parts, weights, width = made["train"].parent / "parts", digest_of(encoder), 0
    code = Path(str(sys.modules[chosen.encoder.implemented_in].__file__)).read_bytes()
    known = as_json([canonical(chosen), weights]).encode() + code

    def encoded(part: Path, samples: torch.Tensor) -> torch.Tensor:
        """Return features of samples, perhaps computed by a job that was interrupted."""
        key = hashlib.sha256(known + samples.numpy().tobytes()).hexdigest()
        with suppress(FedstageError):  # missing, or damaged
            tensors, metadata = load_tensors(part)
            if metadata["key"] == key:
                return tensors["features"]
        found = encode(encoder, samples, chosen, device)
        save_tensors(part, {"features": found}, {"key": key})
        return found

    for name in ("train", "test", "held_out", "server_validation", "test_own"):
        tensors, _ = map_tensors(getattr(read, name))
        all_samples, found = tensors["images"], []
        for start in range(0, len(all_samples), _PART):
            part = folder_of_parts / f"{name}_{start}.safetensors"
            found.append(encoded(part, all_samples[start : start + _PART]))
        features_ = torch.cat(found) if found else torch.empty(0, width)
        width = features_.shape[1]
        save_tensors(made[name], {**tensors, "images": features_})
    replaced = {"name": chosen.name, "shape": [width], "mean": [], "std": [], "encoder": weights}
    save_json(made["info"], load_json(read.info) | replaced)
    shutil.rmtree(folder_of_parts)
