"""The final scores of a run, by class and by client."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd
import torch

from fedstage.algorithm.ensemble_trainers import read_members, teacher_logits
from fedstage.algorithm.measures.scores import accuracy_on_own, by_own_mix, score
from fedstage.algorithm.one_shot.client_models import compute_client_logits, of_classes
from fedstage.algorithm.one_shot.prediction import of_chosen, predict
from fedstage.data.bags import Samples
from fedstage.data.label_counts import read_counts
from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import ExperimentRun, Part
from fedstage.models.loading import fill_model, new_model
from fedstage.plan import one_shot, unfederated
from fedstage.plan.members import evaluated_name
from fedstage.plan.training import member_logits
from fedstage.results.at_hand.models import (
    final_models,
    info_of,
    scored_model,
    scored_owners,
    scored_samples,
)
from fedstage.results.at_hand.runs import find_run
from fedstage.results.figures.names import name_of, read_names
from fedstage.settings.ensembles import GlobalModel, OneByOne
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import LocalRecipe, Recipe
from fedstage.settings.scores import Axis
from fedstage.storage.tensors import load_tensors
from fedstage.training.passes import compute_logits

Logits = Iterator[tuple[str, torch.Tensor]]


def by_class(
    target: str,
    method: str,
    seed: int | None = None,
    *,
    at: Mapping[str, Axis] | None = None,
    folder: str | Path = ".",
) -> pd.DataFrame:
    """Return the final accuracy of a run on each class.

    Arguments and errors are as in `fedstage.results.model`. The models compute on the CPU, so
    predictions may differ if the run has used a GPU.

    Returns
    -------
    pandas.DataFrame
        Columns `model` (``global_model``, the name of an ensemble, ``client_3``, ...), `class` (its
        number), `class_name` (in the data, or the number), `samples` (of the class, among those
        that the run is scored on) and `accuracy` (in percent, NaN without samples).
    """
    run, part = _found(target, method, seed, at, Path(folder))
    images, labels = scored_samples(run, part, Path(folder))
    names = read_names([run]).classes
    rows = []
    for name, logits in _final_logits(run, part, images, Path(folder)):
        counts = torch.bincount(labels, minlength=logits.shape[1])
        accuracies = score(logits, labels).by_class
        pairs = enumerate(zip(counts.tolist(), accuracies.tolist(), strict=True))
        rows += [(name, label, name_of(label, names), *measured) for label, measured in pairs]
    return pd.DataFrame(rows, columns=["model", "class", "class_name", "samples", "accuracy"])


def by_client(
    target: str,
    method: str,
    seed: int | None = None,
    *,
    at: Mapping[str, Axis] | None = None,
    folder: str | Path = ".",
) -> pd.DataFrame:
    """Return the final accuracies of a run for each client.

    Arguments and errors are as in `by_class`.

    Returns
    -------
    pandas.DataFrame
        Columns `client` (its number), `client_name` (in the data, or the number), `model` (the
        client's own if there is one per client), `samples` (that the client trains on), `accuracy`
        (of the model on the samples that the run is scored on) and `own_accuracy`, both in percent.
        The latter is on the client's own test samples, NaN if it has none. If test samples belong
        to no client, it is on all of them, with classes weighted by the client's own mix (NaN if
        none of its classes is among them).
    """
    run, part = _found(target, method, seed, at, Path(folder))
    images, labels = scored_samples(run, part, Path(folder))
    counts = read_counts(Path(run.partition))
    owners = scored_owners(run, part, Path(folder))
    predicted = dict(_final_logits(run, part, images, Path(folder)))
    scores = {name: score(logits, labels) for name, logits in predicted.items()}
    (only, *others) = scores
    names = read_names([run]).clients
    rows = []
    for client in sorted(counts):
        name = f"client_{client}" if others else only
        if owners is None:
            own = by_own_mix(scores[name], {client: counts[client]})[client]
        else:
            found = accuracy_on_own(predicted[name], labels, owners, client)
            own = found[0] if found else None
        own = math.nan if own is None else own
        measured = (sum(counts[client].values()), scores[name].accuracy, own)
        rows.append((client, name_of(client, names), name, *measured))
    columns = ["client", "client_name", "model", "samples", "accuracy", "own_accuracy"]
    return pd.DataFrame(rows, columns=columns)


def _found(
    target: str, method: str, seed: int | None, at: Mapping[str, Axis] | None, folder: Path
) -> tuple[ExperimentRun, Part]:
    where, run, part = find_run(target, method, seed, at, folder)
    if isinstance(part.recipe, Recipe) and isinstance(part.length.evaluate, OneByOne):
        raise FedstageError(
            f"{where}: evaluate = {part.length.evaluate.name!r}: is scored by the models of its "
            "participants one by one; only their means are known, see fedstage.results.load"
        )
    return run, part


def _final_logits(run: ExperimentRun, part: Part, images: Samples, folder: Path) -> Logits:
    """Yield name and logits [n, classes] of each model, or ensemble, that a run is scored by."""
    recipe = part.recipe
    if isinstance(recipe, LocalRecipe):
        yield from _local(run, part, recipe, images, folder)
    elif isinstance(recipe, OneShotRecipe) and recipe.distillation is None:
        yield "aggregator", _aggregated(run, recipe, images, folder)
    elif isinstance(recipe, Recipe) and not isinstance(part.length.evaluate, GlobalModel):
        yield _ensemble(run, part, recipe, folder)
    else:
        name = scored_model(part)
        assert name is not None, "of recipes with rounds the others are ensembles"
        architecture, path = final_models(part)[name]
        network = new_model(architecture, info_of(run), images.device, recipe.numerics)
        fill_model(network, load_tensors(folder / path)[0], folder / path)
        logits = compute_logits(network, images, info_of(run), recipe.numerics)
        yield "global_model" if name == "group_0" else "distilled_model", logits


def _ensemble(
    run: ExperimentRun, part: Part, recipe: Recipe, folder: Path
) -> tuple[str, torch.Tensor]:
    """Return the name of an ensemble and its logits, from its members' logits."""
    ensemble, role = part.length.evaluate, run.length.role
    assert not isinstance(ensemble, GlobalModel | OneByOne), "of which there are no members"
    paths = member_logits(recipe, part.length.rounds, ensemble, role)
    members = read_members([folder / path for path in paths])
    return evaluated_name(ensemble), teacher_logits(ensemble, members)


def _local(
    run: ExperimentRun, part: Part, recipe: LocalRecipe, images: Samples, folder: Path
) -> Logits:
    """Yield the logits of models that were trained without federation, in their precision."""
    paths = unfederated.models_in_precision(recipe)
    names = list(final_models(part))
    wanted = part.length.evaluate_client
    for number, (name, path) in enumerate(zip(names, paths, strict=True)):
        if wanted in (None, number):
            logits, _ = compute_client_logits(recipe, folder / path, images, info_of(run))
            yield name, of_classes(logits, info_of(run))


def _aggregated(
    run: ExperimentRun, recipe: OneShotRecipe, images: Samples, folder: Path
) -> torch.Tensor:
    """Return the logits of a one-shot aggregator, from its members' logits."""
    paths = unfederated.members_logits(recipe, run.length.role)
    members = torch.stack([load_tensors(folder / path)[0]["logits"] for path in paths])
    parameters, notes = load_tensors(folder / one_shot.aggregator(recipe))
    chosen = of_chosen(recipe, notes["members"], members, info_of(run))
    return predict(recipe.aggregator, parameters, chosen, images, info_of(run))
