"""What training starts from: samples, their division over clients, participants, first weights."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from fedstage.data.bags import Bags
from fedstage.data.datasets import check_classes, load
from fedstage.data.datasets.images import Dataset, Images, pixel_statistics
from fedstage.data.participation import SCHEMA, by_group, draw_groups, draw_independently, table
from fedstage.data.partitions import CLIENTS_SCHEMA, HISTOGRAM_SCHEMA, Indices
from fedstage.data.partitions.roles import divide_with_core, label_histogram, split_roles, with_core
from fedstage.data.samples import read_counts, read_info, read_labelled, read_samples
from fedstage.errors import FedstageError
from fedstage.models.heads import body_of
from fedstage.models.initialisation import initialise, try_model
from fedstage.models.loading import build
from fedstage.models.parts import freeze
from fedstage.models.pretrained import LAYOUTS, take_weights
from fedstage.plan.inputs import (
    ClientsInputs,
    DatasetInputs,
    InitialModelInputs,
    ParticipationInputs,
    PartitionInputs,
)
from fedstage.protocol.rounds import base_of
from fedstage.randomness import torch_generator
from fedstage.settings.base import is_plugin
from fedstage.settings.data import Data, DataOption
from fedstage.settings.data_sets import ImageSet
from fedstage.settings.groups import Delays, PlanSettings
from fedstage.settings.models import InitialModel, Pretrained
from fedstage.settings.partitions import PartitionSettings
from fedstage.stages import Made
from fedstage.storage.files import load_json, save_json
from fedstage.storage.raw_files import check_planned, default_folder
from fedstage.storage.tables import save_table
from fedstage.storage.tensors import map_tensors, save_tensors
from fedstage.training.public_images import change_once
from fedstage.weights import Weights


def dataset(recipe: DataOption, read: DatasetInputs[Path], made: Made) -> None:
    """Write the training, test and held-out arrays of a data set, and its info.

    Parameters
    ----------
    train, test : Path
        Outputs: `images` uint8 [n, C, H, W], or another kind of
        `fedstage.data.datasets.images.Images`; `labels` int64 [n] and, where the data set has them,
        `clients` int64 [n].
    held_out : Path
        Output: `images` uint8 [m, C, H, W], changed by `held_out_augmentation` of the settings.
    server_validation, test_own : Path
        Outputs: as `test`; `test_own` as each client prepares its own samples, empty where that
        makes no difference.
    info : Path
        Output: name, number and names of classes, shape of a sample (of images [C, H, W]), mean and
        standard deviation [C] of the training pixels scaled to 0..1 (empty if samples are not
        images), and the number of samples of each part. Where the data set has them: the names of
        clients, the features, and the columns that were left out because they are constant.

    Raises
    ------
    FedstageError
        If raw files are not the planned ones.
    """
    chosen, folder = recipe.data, default_folder()
    check_planned(chosen, folder, read.raw)
    loaded = load(chosen, folder)
    for part in ("train", "test", "server_validation"):
        save_tensors(made[part], _tensors(getattr(loaded, part)))
    save_tensors(made["test_own"], _tensors(loaded.test_own or loaded.test.none))
    save_tensors(made["held_out"], {"images": _public(chosen, loaded.held_out)})
    save_json(made["info"], describe(chosen.name, loaded))


def describe(name: str, data: Dataset) -> dict[str, Any]:
    """Return the info of a data set."""
    pixels = data.train.images.dtype == torch.uint8
    mean, deviation = pixel_statistics(data.train.images) if pixels else ([], [])
    named = {key: getattr(data, key) for key in ("client_names", "feature_names", "constant")}
    return {
        "name": name,
        "classes": len(data.class_names),
        "class_names": list(data.class_names),
        "shape": list(data.train.images.shape[1:]),
        "mean": mean,
        "std": deviation,
        "train": len(data.train.labels),
        "test": len(data.test.labels),
        "held_out": len(data.held_out),
        "server_validation": len(data.server_validation.labels),
        **{key: list(names) for key, names in named.items() if names is not None},
    }


def _public(settings: Data, images: torch.Tensor) -> torch.Tensor:
    """Return the held-out images as teachers and students see them."""
    if not isinstance(settings, ImageSet) or settings.held_out_augmentation == "none":
        return images
    return change_once(images, settings.held_out_augmentation, settings.split_seed)


def _tensors(part: Images) -> dict[str, torch.Tensor]:
    tensors = {name: getattr(part, name) for name in ("images", "labels", "clients", "starts")}
    return {name: value for name, value in tensors.items() if value is not None}


def partition(
    recipe: PartitionSettings, read: PartitionInputs[Path], *, output: Path, histogram: Path
) -> None:
    """Write the client and role of each training sample, and the label histogram of each client.

    The samples of a core have the number after the last client's.

    Parameters
    ----------
    output, histogram : Path
        Parquet of CLIENTS_SCHEMA and HISTOGRAM_SCHEMA of `fedstage.data.partitions`.
    """
    tensors, _ = map_tensors(read.train)
    labels = _column(tensors, "labels")
    if labels is None:
        raise FedstageError(f"{read.train}: has no tensor 'labels', only {sorted(tensors)}")
    info, tested = read_info(read.info), map_tensors(read.test)[0]["labels"]
    check_classes(info["name"], info["class_names"], tensors["labels"], tested)
    natural = _column(tensors, "clients")
    check_planned(recipe.partition, default_folder(), read.raw)
    assigned, own = divide_with_core(recipe, labels, natural)
    roles = (recipe.validation, recipe.seed, recipe.aggregator_fraction)
    columns = split_roles(assigned, *roles)
    if own is not None:
        columns = with_core(columns, own, recipe.clients)
    save_table(output, columns, CLIENTS_SCHEMA)
    save_table(histogram, label_histogram(columns, labels), HISTOGRAM_SCHEMA)


def _column(tensors: Weights, name: str) -> Indices | None:
    return tensors[name].numpy().astype(np.int64) if name in tensors else None


def core(recipe: PartitionSettings, read: ClientsInputs[Path], *, output: Path) -> None:
    """Write the samples of the role ``core``, in the order of the training set, with their labels.

    Raises
    ------
    FedstageError
        If a required class is missing.
    """
    images, labels = read_labelled(
        read.data, read_samples(read.clients, "core"), torch.device("cpu")
    )
    if isinstance(images, Bags):
        raise FedstageError(f"{read.data}: samples are bags: a core needs samples of one shape")
    number = int(read_info(read.info)["classes"])
    missing = sorted(set(range(number)) - set(labels.tolist()))
    if missing and recipe.core is not None and recipe.core.classes == "all":
        raise FedstageError(
            f"core.classes = 'all': {len(missing)} of {number} classes have no sample among the "
            f"core's {len(labels)}, such as class {missing[0]}; take core.samples = stratified, "
            "core.classes = some, fewer clients or another partition"
        )
    save_tensors(output, {"images": images, "labels": labels}, {"samples": len(labels)})


def participation(
    recipe: PlanSettings, read: ParticipationInputs[Path], *, first: int, last: int, output: Path
) -> None:
    """Write the participants of the rounds `first` to `last`, both included.

    Parameters
    ----------
    first, last : int
        Rounds, numbered from 1.
    """
    plan, samples = recipe, None
    if read.histogram is not None:
        counts = read_counts(read.histogram)
        samples = np.array([sum(counts.get(client, {}).values()) for client in range(plan.clients)])
    order = plan.participation == "in_turn"
    independent = plan.participation == "poisson"
    participants = plan.clients if independent else plan.participants
    key = (plan.clients, participants, plan.seed, first, last)
    rows = table(*key, samples, order)
    drawn: dict[str, Any] = {name: column.tolist() for name, column in rows.items()}
    if independent:
        drawn["client"] = [
            client
            for round_ in range(first, last + 1)
            for client in draw_independently(plan.clients, plan.participants, plan.seed, round_)
        ]
    if plan.groups is not None:
        drawn = by_group(rows, draw_groups(plan.clients, plan.groups, plan.seed), plan.groups)
    how = plan.delays or Delays()
    drawn["base_round"] = [
        base_of(how.staleness, plan.seed, round_, participant % plan.participants)
        for round_, participant in zip(drawn["round"], drawn["participant"], strict=True)
    ]
    if how.withdraw_stale:
        places = zip(drawn["client"], drawn["round"], drawn["base_round"], strict=True)
        drawn["client"] = [client if base == t - 1 else None for client, t, base in places]
    save_table(output, drawn, SCHEMA)


def initial_model(
    recipe: InitialModel, read: InitialModelInputs[Path], *, group: int, output: Path
) -> None:
    """Draw the weights that the global model of a group starts from.

    With the setting `weights`, all layers but the last are taken from a file instead.

    Parameters
    ----------
    group : int
        Number of the global model, from 0; every group starts from its own weights.

    Raises
    ------
    FedstageError
        If the model does not take the data set's samples, or a plugin's model returns no logits for
        them.
    """
    model, _ = _drawn(recipe, load_json(read.info), group)
    save_tensors(output, model.state_dict())


def base_model(recipe: InitialModel, read: InitialModelInputs[Path], *, output: Path) -> None:
    """Draw what no model trains: as the initial model of group 0 has it, for all groups.

    Stages read it in place of the data set's info, which is therefore in its metadata.
    """
    info = load_json(read.info)
    _, frozen = _drawn(recipe, info, 0)
    save_tensors(output, frozen, {"info": info})


def _drawn(recipe: InitialModel, info: dict[str, Any], group: int) -> tuple[nn.Module, Weights]:
    """Return the model that a group starts from, and what of it is not trained."""
    shape, classes = tuple(info["shape"]), info["classes"]
    key = (recipe.seed, "initial_model", group)
    model, own = build(recipe.model, shape, classes, *key), is_plugin(recipe.model)
    initialise(model, torch_generator(*key, "weights"), own)
    weights = getattr(recipe.model, "weights", None)
    if isinstance(weights, Pretrained) and not own:  # a plugin reads its weights itself
        take_weights(body_of(model), weights, default_folder(), LAYOUTS[recipe.model.name])
    if own:  # the plan has not tried it where the shape of samples was not known
        try_model(model, recipe.model, shape, classes, least=2)
    parts = recipe.model.trainable
    return model, freeze(model, parts, torch_generator(*key, "products")) if parts else {}
