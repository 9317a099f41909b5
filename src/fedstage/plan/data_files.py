"""The files that training starts from: data sets, partitions, participants, initial weights.

Configurations of runs of all classes share these files: each file has its own configuration, with
the settings that determine it. One file because the name of each depends on the ones before it.
"""

import re
from functools import cache, partial
from typing import Any

from fedstage.plan.graph import File, Folder, Stage, folder_of, found_file, interned, name_of, never
from fedstage.plan.inputs import (
    ClientsInputs,
    DatasetInputs,
    FeaturesInputs,
    InitialModelInputs,
    ParticipationInputs,
    PartitionInputs,
)
from fedstage.plan.results import RESULTS
from fedstage.protocol.digests import canonical
from fedstage.protocol.groups import client_groups
from fedstage.protocol.rounds import block_of
from fedstage.settings.data import CoreSamples, Data, DataOption, Features, Generated, HeldOut
from fedstage.settings.data_sets import OfFiles
from fedstage.settings.equivalences import left_out, simplest
from fedstage.settings.groups import Delays, PlanSettings
from fedstage.settings.models import InitialModel, Model
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.partitions import PartitionSettings
from fedstage.settings.privacy import shares_source
from fedstage.settings.recipes import LocalRecipe, Recipe

AnyRecipe = Recipe | LocalRecipe | OneShotRecipe

# --- names of folders -----------------------------------------------------------------------------


def common_name(recipe: Any, main: Model | None = None) -> str:
    """Name samples and architecture, by default the `main` one of a recipe."""
    model: str = (main or recipe.model).name
    if len(set(getattr(recipe, "architectures", ()))) > 1:
        model += "_and_others"
    return f"{samples_name(recipe)}-{model}"


def samples_name(recipe: Any) -> str:
    """Name a data set and its partition."""
    alpha = getattr(recipe.partition, "alpha", None)
    name = f"{short(recipe.data)}-{recipe.partition.name}"
    return name if alpha is None else f"{name}{alpha:g}"


def short(data: Data) -> str:
    """Name a data set."""
    if isinstance(data, Features):
        return f"{short(data.of)}_features"
    return re.sub(r"[^A-Za-z0-9]", "_", data.folder) if data.name == "parquet" else data.name


#: A stage that computes with no model.
_prepared = partial(Stage, module="data", on_device=never)

# --- data sets ------------------------------------------------------------------------------------

#: Parts of a data set with files of their own, in addition to the training samples.
_PARTS = ("test", "held_out", "server_validation", "test_own")


DATA = Folder(
    "data",
    DataOption,
    lambda option: short(option.data),
    identity=lambda option: canonical(option.data),
)
_FILES = {part: f"{part}.safetensors" for part in ("train", *_PARTS)} | {"info": "info.json"}


def _encodes(option: DataOption) -> bool:
    return isinstance(option.data, Features)


@partial(_prepared, folder=DATA, outputs=_FILES, used=lambda option: not _encodes(option))
def dataset(option: DataOption) -> DatasetInputs[str]:
    """Read a data set into arrays: train, test, held out.

    Raw files are no files of the graph, because they lie in the data folder: their digests are.
    """
    return DatasetInputs(raw_file(DATA, option))


@partial(Stage, folder=DATA, outputs=_FILES, used=_encodes)
def features(option: DataOption) -> FeaturesInputs[str]:
    """Encode the samples of a data set."""
    assert isinstance(option.data, Features), "`used` says so"
    of = {name: data_file(option.data.of, name) for name in _FILES}
    return FeaturesInputs(raw=raw_file(DATA, option), **of)


def raw_choice(config: Any) -> OfFiles | None:
    """Return the data set, encoder or partition that a folder is of, if it has raw files."""
    chosen: OfFiles | None = config.partition if isinstance(config, Division) else None
    if isinstance(config, DataOption):
        chosen = config.data.encoder if isinstance(config.data, Features) else config.data
    return chosen if chosen and chosen.in_folder and chosen.raw else None


def raw_file(folder: Folder, config: Any) -> str | None:
    """Return the list of the raw files of a data set or partition, None if it has none."""
    name = folder_of(folder, config).rpartition("/")[2]
    return f"{RESULTS}/raw/{name}.json" if raw_choice(config) else None


@cache
def data_file(data: Data, part: str) -> File:
    """Return a data set's file: ``train``, ``test``, ``info``, or another output of its stage."""
    option = interned(DataOption.model_construct(data=data))
    return (features if _encodes(option) else dataset)(option, output=part)


def info(recipe: AnyRecipe) -> File:
    """Return the description of the clients' data set, with the base weights of models, if any."""
    model = getattr(recipe, "model", None)  # some files of rounds depend on no model
    if model is not None and model.trainable:
        return base_model(_initial(recipe.data, model, recipe.seed))
    return data_file(recipe.data, "info")


def public_id(recipe: Recipe | OneShotRecipe) -> str:
    """Name public images for `samples_file`: `held_out`, `core`, or a data set's folder."""
    if isinstance(recipe.public, HeldOut | CoreSamples):
        return recipe.public.name
    assert not isinstance(recipe.public, Generated), "generated images have names of their own"
    public: Data = recipe.public
    if isinstance(recipe.data, Features):  # models take what its encoder makes
        public = recipe.data.model_copy(update={"of": public})
    return name_of(data_file(public, "train"))


def samples_file(recipe: AnyRecipe, samples: str) -> str:
    """Return the file of the samples that logits are computed on.

    `samples` is a part of the clients' data set, a role among its training samples (``validation``,
    ``aggregator``), or all of these (``train``). It may also be the server's ``core``,
    ``FOLDER.NAME`` of generated images, or the id of another data set, for its training samples.
    """
    if samples in _PARTS:
        return data_file(recipe.data, samples)
    if samples in ("train", "validation", "aggregator"):
        return data_file(recipe.data, "train")
    if samples == "core":
        return core_file(recipe)
    folder, _, name = samples.partition(".")
    place = f"{folder}/{name}" if name else f"data/{samples}"
    return found_file(f"{RESULTS}/{place}/train.safetensors")


# --- partitions -----------------------------------------------------------------------------------


class Division(PartitionSettings):
    """All that determines a partition."""

    data: Data


PARTITIONS = Folder(
    "partitions",
    Division,
    lambda division: f"{samples_name(division)}-seed{division.seed}",
)


@partial(
    _prepared,
    folder=PARTITIONS,
    outputs={"output": "clients.parquet", "histogram": "label_histogram.parquet"},
)
def partition(division: Division) -> PartitionInputs[str]:
    """Divide the training samples over clients and roles."""
    train, test, info = (data_file(division.data, part) for part in ("train", "test", "info"))
    return PartitionInputs(train, test, info, raw_file(PARTITIONS, division))


@partial(
    _prepared,
    folder=PARTITIONS,
    outputs={"output": "core.safetensors"},
    used=lambda division: division.core is not None,
)
def core(division: Division) -> ClientsInputs[str]:
    """Write the labelled samples that the server has of its own."""
    data = division.data
    return ClientsInputs(data_file(data, "train"), data_file(data, "info"), partition(division))


@cache
def division_of(recipe: AnyRecipe) -> Division:
    """Return the settings of a run's partition."""
    own = left_out(recipe) if isinstance(recipe, OneShotRecipe) else None
    dealt = recipe.core is not None and recipe.core.samples != "all"
    division = Division.model_construct(
        data=recipe.data,
        clients=recipe.clients,
        partition=recipe.partition,
        validation=recipe.validation,
        aggregator_fraction=getattr(recipe, "aggregator_fraction", 0.0) if own is None else own,
        core=recipe.core if dealt else None,
        seed=recipe.seed,
    )
    return interned(division)


@cache
def clients_table(recipe: AnyRecipe) -> File:
    """Return the partition: one row per sample with its client and role."""
    return partition(division_of(recipe))


def clients_samples(recipe: AnyRecipe, samples: str = "train") -> dict[str, Any]:
    """Return the files of `ClientsInputs`; `samples` is as in `samples_file`."""
    return {
        "data": samples_file(recipe, samples),
        "info": info(recipe),
        "clients": clients_table(recipe),
    }


def possibly_public(recipe: Recipe | OneShotRecipe) -> dict[str, Any]:
    """Return the files of clients' samples, if public samples may be among them."""
    if not shares_source(recipe):
        return {"data": None, "clients": None}
    return {"data": samples_file(recipe, "train"), "clients": clients_table(recipe)}


def label_histogram(recipe: AnyRecipe) -> File:
    """Return the label counts of every client and role."""
    return partition(division_of(recipe), output="histogram")


def scored_samples(recipe: AnyRecipe, samples: str = "train") -> dict[str, Any]:
    """Return the files of `ScoredInputs`; `samples` is as in `samples_file`."""
    return clients_samples(recipe, samples) | {"histogram": label_histogram(recipe)}


def images_of(recipe: AnyRecipe, samples: str) -> dict[str, Any]:
    """Return the files of `SamplesInputs`; `samples` is as in `samples_file`."""
    whole = samples not in ("validation", "aggregator")
    return clients_samples(recipe, samples) | ({"clients": None} if whole else {})


def core_file(recipe: AnyRecipe) -> File:
    """Return the server's own labelled samples."""
    assert recipe.core is not None, "checked by the recipe: a recipe that reads a core has one"
    whole = recipe.core.samples == "all"
    return data_file(recipe.data, "train") if whole else core(division_of(recipe))


# --- participants ---------------------------------------------------------------------------------


class Plan(PlanSettings):
    """All that determines a plan of participants; `data` is the partition that it is drawn by."""

    data: Division | None


def _label_of_plan(plan: Plan) -> str:
    name = f"{plan.participants}_of_{plan.clients}"
    if plan.groups:
        name += f"-{plan.groups}_groups"
    if plan.participation != "uniform":
        name += f"-{plan.participation}"
    if how := plan.delays:
        name += f"-{how.staleness.name}" + ("_withdrawn" if how.withdraw_stale else "")
    return f"{name}-seed{plan.seed}"


def _identity_of_plan(plan: Plan) -> Any:
    """Return what determines participants and is not in the label."""
    drawn_by = [folder_of(PARTITIONS, plan.data).rpartition("/")[2]] if plan.data else []
    parts = [*drawn_by, *([canonical(plan.delays)] if plan.delays else [])]
    return parts if len(parts) > 1 else next(iter(parts), None)


@partial(
    _prepared,
    folder=Folder("participation", Plan, _label_of_plan, identity=_identity_of_plan),
    outputs={"output": "rounds_{first:04d}-{last:04d}.parquet"},
)
def participation(plan: Plan, first: int, last: int) -> ParticipationInputs[str]:
    """Draw the client of each participant of a round."""
    return ParticipationInputs(partition(plan.data, output="histogram") if plan.data else None)


def groups_drawn(recipe: Recipe) -> int | None:
    """Return the number of groups if the group of each client is drawn, else None."""
    settings = simplest(recipe)
    return len(client_groups(settings)) if settings.client_groups == "drawn" else None


@cache
def _plan_of(recipe: Recipe) -> Plan:
    late = simplest(recipe)
    delays = Delays.model_construct(staleness=late.staleness, withdraw_stale=late.withdraw_stale)
    return Plan.model_construct(
        clients=recipe.clients,
        participants=recipe.participants,
        participation=recipe.participation,
        groups=groups_drawn(recipe),
        delays=delays if late.staleness.name != "none" else None,
        data=division_of(recipe) if recipe.participation == "by_samples" else None,
        seed=recipe.seed,
    )


def participation_table(recipe: Recipe, round_: int) -> File:
    """Return the table with the client of each participant of `round_`."""
    return participation(_plan_of(recipe), *block_of(round_))


# --- weights --------------------------------------------------------------------------------------


class Initial(InitialModel):
    """All that determines initial weights; the data set gives the shape and the classes."""

    data: Data


_of_weights = partial(
    _prepared,
    folder=Folder(
        "initial_models",
        Initial,
        lambda initial: f"{short(initial.data)}-{initial.model.name}-seed{initial.seed}",
    ),
)


@partial(_of_weights, outputs={"output": "group_{group}.safetensors"})
def initial_model(initial: Initial, group: int) -> InitialModelInputs[str]:
    """Draw the weights that a global model starts from."""
    return InitialModelInputs(data_file(initial.data, "info"))


@partial(
    _of_weights,
    outputs={"output": "base.safetensors"},
    used=lambda initial: bool(initial.model.trainable),
)
def base_model(initial: Initial) -> InitialModelInputs[str]:
    """Draw the weights that no model of a seed changes, as of group 0, and add the data's info."""
    return InitialModelInputs(data_file(initial.data, "info"))


def _initial(data: Data, model: Model, seed: int) -> Initial:
    return interned(Initial.model_construct(data=data, model=model, seed=seed))


@cache
def initial_weights(data: Data, model: Model, seed: int, group: int) -> File:
    """Return w*_{0,k}, which every method of a seed shares."""
    return initial_model(_initial(data, model, seed), group)
