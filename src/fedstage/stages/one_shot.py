"""One-shot federated learning: what the server makes of clients' trained models, and its scores."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fedstage.algorithm.exchange.traffic import payload_bytes
from fedstage.algorithm.global_trainers.student import Taught
from fedstage.algorithm.global_trainers.students import teach_and_tell
from fedstage.algorithm.global_trainers.transfers import loss_of, targets_of
from fedstage.algorithm.measures.metrics import METRICS_SCHEMA
from fedstage.algorithm.measures.model_metrics import model_metrics
from fedstage.algorithm.one_shot.aggregator_training import Samples
from fedstage.algorithm.one_shot.client_models import of_classes
from fedstage.algorithm.one_shot.fitting import fit, knowledge, read_role
from fedstage.algorithm.one_shot.gaussian_heads import Moments, head, moments_of, total
from fedstage.algorithm.one_shot.prediction import of_chosen, predict
from fedstage.algorithm.one_shot.selections import chosen_members
from fedstage.algorithm.one_shot.traffic import ROUNDS_SCHEMA, Quantised, before_rounds, traffic
from fedstage.data.samples import read_counts, read_labelled, read_public, tell_private
from fedstage.errors import FedstageError
from fedstage.models.heads import LAST
from fedstage.plan.inputs import (
    AggregatorInputs,
    ClosedFormModelInputs,
    DistilledModelInputs,
    FeatureMomentsInputs,
    OneShotEvaluationInputs,
)
from fedstage.protocol.one_shot import members
from fedstage.protocol.teaching import teaching_of
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.transfers import ClosedForm
from fedstage.stages import Made
from fedstage.stages.inputs import begin, load_model, read_own, read_scored, stack_logits
from fedstage.storage.tables import load_table, save_rows, save_table
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.training.passes import compute_logits
from fedstage.weights import Weights


def aggregator(recipe: OneShotRecipe, read: AggregatorInputs[Path], made: Made) -> None:
    """Train or compute the aggregator, and write it with a table of its traffic.

    No data of the clients in `forget` are read: neither their models nor their samples and counts.

    Parameters
    ----------
    snapshots : Path
        Output: the aggregator after every fifth round of its training, each tensor a stack of them.

    Raises
    ------
    FedstageError
        If training diverges, or the rule does not fit the data.
    """
    device, info = begin(recipe, read.info)

    def samples_of(role: str, paths: list[Path], data: Path | None) -> dict[int, Samples]:
        if data is None:
            return {}
        return read_role(recipe, role, paths, data, read.clients, info, device)

    samples = samples_of("aggregator", read.logits, read.data)
    held_out = samples_of("validation", read.validation_logits, read.validation)
    everyone, counts = members(recipe), read_counts(read.histogram)
    chosen = chosen_members(recipe, counts, held_out, info) if recipe.members else everyone
    places = torch.tensor([everyone.index(client) for client in chosen], device=device)
    samples = {client: own.of_members(places) for client, own in samples.items()}
    own = [read.models[place] for place in places.tolist()]
    known = knowledge(recipe, chosen, counts, info, samples, own)
    trained = fit(recipe, chosen, known, samples)
    metadata = {"members": chosen, "round": len(trained.rounds)}
    save_tensors(made["output"], trained.parameters, metadata)
    save_tensors(made["snapshots"], *_stacked(trained.kept))
    sizes = [payload_bytes(load_tensors(path)[0]) for path in read.models]
    sent = _quantised(read.quantised) if read.quantised else None
    columns = traffic(recipe, sizes, places.tolist(), info["classes"], trained, sent)
    save_table(made["rounds"], columns, ROUNDS_SCHEMA)


def _stacked(kept: Mapping[int, Weights]) -> tuple[Weights, dict[str, list[int]]]:
    """Return the parameters of several rounds as one tensor per name, and the rounds."""
    names = next(iter(kept.values()), {})
    stacks = {name: torch.stack([one[name] for one in kept.values()]) for name in names}
    return stacks, {"rounds": list(kept)}


def _quantised(paths: list[Path]) -> Quantised:
    read = [load_tensors(path) for path in paths]
    ranges = [metadata["ranges"] for _, metadata in read]
    return Quantised([payload_bytes(tensors) for tensors, _ in read], ranges)


def feature_moments(
    recipe: OneShotRecipe, read: FeatureMomentsInputs[Path], *, client: int, output: Path
) -> None:
    """Compute moments of the client's training samples after all but the last layer of a model."""
    device, info = begin(recipe, read.info)
    images, labels = read_own(read, client, device, info)
    model = load_model(read.start, recipe.student or recipe.model, info, device, recipe.numerics)
    setattr(model, LAST, nn.Identity())
    features = compute_logits(model, images, info, recipe.numerics)
    found = moments_of(features, labels.cpu(), int(info["classes"]))
    tensors = {"counts": found.counts.int(), "sums": found.sums.float()}
    tensors["products"] = found.products.float()
    save_tensors(output, tensors, {"client": client, "samples": len(labels)})


def closed_form_model(recipe: OneShotRecipe, read: ClosedFormModelInputs[Path], made: Made) -> None:
    """Compute the last layer, which follows the layers of `start`.

    Parameters
    ----------
    rounds : Path
        Output: a table of the traffic.

    Raises
    ------
    FedstageError
        If the covariance of the features has no inverse.
    """
    assert isinstance(recipe.distillation, ClosedForm), "of such a recipe alone the graph has this"
    sent = [load_tensors(path) for path in read.moments]
    known = total([Moments(one["counts"], one["sums"], one["products"]) for one, _ in sent])
    weights, biases = head(recipe.distillation, known, len(sent))
    if not bool(weights.isfinite().all()):
        what, hint = "covariance has", "shrinkage above 0, or higher"
        if recipe.distillation.ridge:
            what, hint = "products have", "ridge.clean = false, or a higher ridge.gamma"
        raise FedstageError(f"distillation = closed_form: features' {what} no inverse; set {hint}")
    layers, _ = load_tensors(read.start)
    tensors = {name: value.clone() for name, value in layers.items()}
    tensors |= {f"{LAST}.weight": weights.float(), f"{LAST}.bias": biases.float()}
    save_tensors(made["output"], tensors, {"members": [metadata["client"] for _, metadata in sent]})
    up, down = payload_bytes(sent[0][0]), payload_bytes(layers)
    phases = {"initial_model": (0, down), "moments": (up, 0)}
    save_rows(made["rounds"], before_rounds(phases, len(sent)), ROUNDS_SCHEMA)


def distilled_model(
    recipe: OneShotRecipe, read: DistilledModelInputs[Path], *, output: Path
) -> None:
    """Teach the student the aggregator's predictions on the public images, or their labels."""
    device, info = begin(recipe, read.info)
    teaching = teaching_of(recipe)
    images = read_public(read.public, info, device)
    tell_private(images, read.data, read.clients)
    labelled = teaching.server.labels or read.aggregator is None
    labels = read_labelled(read.public, None, device)[1] if labelled else None
    if read.aggregator is not None:
        parameters, notes = load_tensors(read.aggregator)
        learnt_from = notes["members"]
        stacked = stack_logits(read.logits, device)
        ensemble = of_chosen(recipe, learnt_from, stacked, info)
        teacher = predict(recipe.aggregator, parameters, ensemble, images, info)
        ensemble = of_classes(ensemble, info)
    else:
        assert labels is not None, "checked by OneShotRecipe: without an ensemble labels teach"
        teacher, ensemble, learnt_from = labels, labels.new_empty(0, len(labels)), members(recipe)
    model = load_model(read.start, recipe.student, info, device, recipe.numerics)
    taught = Taught(images, targets_of(teaching, teacher, ensemble), labels)
    weights, learnt = teach_and_tell(
        model, taught, loss_of(teaching), teaching.server, recipe.numerics, info,
        (recipe.seed, "distilled_model"), "distilled model",
        server_validation=read.server_validation, told={"round": 1}, warns=True,
    )  # fmt: skip
    save_tensors(output, weights, {"members": learnt_from} | learnt)


def one_shot_evaluation(
    recipe: OneShotRecipe, read: OneShotEvaluationInputs[Path], made: Made, *, role: str
) -> None:
    """Write one row of metrics, of round 1, and the aggregator's metrics during its training.

    Parameters
    ----------
    role : str
        ``test``, ``test_own``, or ``validation``: the samples with this role in `clients`.
    over_rounds : Path
        Output: a row for each snapshot, by the round of the aggregator's training. Some released
        code reports the highest of these rows; here nothing is chosen by it.
    """
    device, info = begin(recipe, read.info)
    images, labels, counts, owners = read_scored(recipe, read, role, device, info)
    remaining = len(members(recipe))
    travelled = _mean_bytes(read.rounds, remaining)

    def row(
        round_: int, predicted: torch.Tensor, voted: torch.Tensor | None = None
    ) -> dict[str, Any]:
        return {
            "round": round_,
            "evaluated": "aggregator" if read.student is None else "distilled_model",
            "role": role,
            **model_metrics(predicted, labels, counts, owners, voted),
            **travelled,
            "participants": remaining,
            "training_loss": None,
        }

    later: list[dict[str, Any]] = []
    if read.student is not None:
        model = load_model(read.student, recipe.student, info, device, recipe.numerics)
        last = row(1, compute_logits(model, images, info, recipe.numerics))
    else:
        assert read.aggregator is not None, "the graph gives both without a student"
        assert read.snapshots is not None, "the graph gives both without a student"
        weights, notes = load_tensors(read.aggregator)
        stacked = stack_logits(read.logits, device)
        ensemble = of_chosen(recipe, notes["members"], stacked, info)
        voted = of_classes(ensemble, info).argmax(2)

        def of(round_: int, parameters: Weights) -> dict[str, Any]:
            predicted = predict(recipe.aggregator, parameters, ensemble, images, info)
            return row(round_, predicted, voted)

        last = of(1, weights)
        later = [of(round_, one) for round_, one in _snapshots(read.snapshots)]
    save_rows(made["output"], [last], METRICS_SCHEMA)
    save_rows(made["over_rounds"], later, METRICS_SCHEMA)


def _snapshots(path: Path) -> Iterator[tuple[int, Weights]]:
    """Yield each round of an aggregator's training that was kept, and its parameters."""
    stacks, metadata = load_tensors(path)
    for position, round_ in enumerate(metadata["rounds"]):
        yield round_, {name: stack[position] for name, stack in stacks.items()}


def _mean_bytes(rounds: Sequence[Path], clients: int) -> dict[str, int]:
    """Return the bytes that a client sends and receives in all rounds, as a mean over clients."""
    rows = [row for path in rounds for row in load_table(path).to_pylist()]
    return {
        way: round(sum(row[way] * row["participants"] for row in rows) / clients)
        for way in ("bytes_up", "bytes_down")
    }
