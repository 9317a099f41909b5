"""Stage `retention`: what a recipe's main model forgets of the participants of earlier rounds."""

from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from fedstage.algorithm.measures.forgetting import RETENTION_SCHEMA, forgetting, percent_right
from fedstage.data.bags import Samples
from fedstage.data.samples import read_labelled, read_owned
from fedstage.models.loading import fill_model, new_model
from fedstage.plan.inputs import RetentionInputs
from fedstage.settings.recipes import Recipe
from fedstage.stages.inputs import begin, read_participants
from fedstage.storage.tables import save_rows
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.training.passes import compute_logits

#: Labelled samples.
Labelled = tuple[Samples, torch.Tensor]
#: Which samples a model classifies correctly, bool [n].
Judge = Callable[[Labelled], torch.Tensor]


def retention(recipe: Recipe, read: RetentionInputs[Path], *, output: Path, right: Path) -> None:
    """Write a row of measures for each round; images are not augmented.

    The measures are defined in "Edge Bias in Federated Learning and its Solution by Buffered
    Knowledge Distillation". The paper does not specify the samples on which methods' new knowledge
    is compared: here these are the test samples, which all methods of a seed share.

    Parameters
    ----------
    output : Path
        The measures, `RETENTION_SCHEMA`.
    right : Path
        Which test samples the first and the last model classify correctly: `start` and `end`, bool.
    """
    device, info = begin(recipe, read.info)
    tables = read_participants(read.participants)
    samples, owners = read_owned(read.clients, "train")
    tested = read_labelled(read.test, None, device, info)
    judges = _judges(read.models, recipe, info, device)

    def samples_of(round_: int) -> Labelled | None:
        took_part = torch.tensor([row["client"] for row in tables[round_]], dtype=torch.int64)
        chosen = samples[torch.isin(owners, took_part)]
        return read_labelled(read.data, chosen, device, info) if len(chosen) else None

    start = end = next(judges)(tested)
    rows = []
    for round_, (columns, judge) in enumerate(_over_rounds(judges, samples_of), start=1):
        end = judge(tested)
        scores = {"distance": _distance(tables[round_]), "top1_accuracy": percent_right(end)}
        rows.append({"round": round_} | columns | scores)
    save_rows(output, rows, RETENTION_SCHEMA)
    save_tensors(right, {"start": start, "end": end}, {"rounds": len(rows)})


def _judges(
    paths: list[Path], recipe: Recipe, info: dict[str, Any], device: torch.device
) -> Iterator[Judge]:
    """Yield a judge for each model; only one model is in memory at a time."""
    model = new_model(recipe.model, info, device, recipe.numerics)

    def right(of: Labelled) -> torch.Tensor:
        samples, labels = of
        logits = compute_logits(model, samples, info, recipe.numerics)
        return logits.argmax(1) == labels.cpu()

    for path in paths:
        fill_model(model, load_tensors(path)[0], path)
        yield right


def _over_rounds(
    judges: Iterator[Judge], samples_of: Callable[[int], Labelled | None]
) -> Iterator[tuple[dict[str, Any], Judge]]:
    """Yield the measures on participants' samples of each round, and the judge of its model."""
    earlier: Labelled | None = None
    before: torch.Tensor | None = None  # which of these the last model classified correctly
    for round_, judge in enumerate(judges, start=1):
        own = samples_of(round_)
        now = None if own is None else judge(own)
        after = None if earlier is None else judge(earlier)
        yield forgetting(now, before, after), judge
        earlier, before = (earlier, after) if own is None else (own, now)


def _distance(rows: list[dict[str, Any]]) -> float | None:
    """Return the mean distance of a round's participants; None if there is none."""
    known = [row["distance"] for row in rows if row["distance"] is not None]
    return fmean(known) if known else None
