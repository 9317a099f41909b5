"""Stage `logits`: what the members of one round and group say about a set of images."""

from pathlib import Path
from typing import Any

import torch

from fedstage.algorithm.ensemble_trainers.sampling.draw import draw
from fedstage.algorithm.exchange.updates import answered, read_updates
from fedstage.data.samples import (
    fill_model,
    new_model,
    read_images,
    read_info,
    read_line,
    read_public,
    read_samples,
)
from fedstage.errors import FedstageError
from fedstage.plan import artefacts
from fedstage.plan.members import parse_sampled
from fedstage.plan.sharing import model_of
from fedstage.settings.ensembles import Bayesian
from fedstage.settings.lines import Line
from fedstage.storage.tensors import Weights, load_tensors, save_tensors
from fedstage.training.devices import prepare
from fedstage.training.inference import compute_logits


def logits(
    *,
    line: Path,
    members: str,
    models: list[Path],
    aggregated: Path | None = None,
    start: Path | None = None,
    data: Path,
    info: Path,
    clients: Path | None = None,
    output: Path,
) -> None:
    """Compute logits [members, n, classes] and write them with each member's training samples.

    Parameters
    ----------
    members : str
        ``aggregated``: `models` is w_{t,k}; ``clients``: the updates of the group; a kind such as
        ``gaussian_10``: what is drawn from these, with `aggregated` w_{t,k} and `start` the model
        that the round started from.
    info : Path
        Of the clients' data: public images are normalised as theirs.
    clients : Path, optional
        The partition, to take only the samples of the validation role.
    """
    settings = read_line(line, Line)
    device = prepare(settings.numerics)
    about = read_info(info)
    if clients is None:
        images = read_public(data, about, device)
    else:
        images, _ = read_images(data, read_samples(clients, "validation"), device)
    drawn = parse_sampled(members)
    if drawn is None:
        read, notes = _read_members(members, models)
    else:
        assert aggregated is not None, "the graph gives it to members that are drawn"
        read, notes = _draw_members(settings, drawn, models, aggregated, start, about)
    model = new_model(model_of(settings, notes["group"]), about, device, settings.numerics)
    outputs = []
    for path, weights in read:
        fill_model(model, weights, path)
        outputs.append(compute_logits(model, images, about, settings.numerics))
    stacked = torch.stack(outputs) if outputs else torch.empty(0, len(images), about["classes"])
    if settings.numerics.logits == "fp16":
        stacked = _halved(stacked, output)
    save_tensors(output, {"logits": stacked}, notes | {"members": members})


def logits_of_round(
    line: Path, settings: Line, round: int, group: int, members: str, images: str, data: Path
) -> None:
    """Call the stage for a round and group, with the files that the graph says it reads."""
    read = artefacts.member_models(settings, round, group, members)
    logits(
        line=line,
        members=members,
        models=[Path(path) for path in read.models],
        aggregated=Path(read.aggregated) if read.aggregated else None,
        start=Path(read.start) if read.start else None,
        data=data,
        info=Path(artefacts.data_file(settings.data, "info")),
        output=Path(artefacts.logits_file(settings, round, group, members, images)),
    )


def _halved(logits: torch.Tensor, output: Path) -> torch.Tensor:
    """Return logits as fp16, which a member that is about to diverge may exceed."""
    halved = logits.half()
    if not bool(halved.isfinite().all()) and bool(logits.isfinite().all()):
        raise FedstageError(
            f"{output}: numerics.logits = 'fp16': logits up to {float(logits.abs().max()):g}, "
            "more than fp16's 65504; use fp32"
        )
    return halved


def _read_members(
    members: str, paths: list[Path]
) -> tuple[list[tuple[Path, Weights]], dict[str, Any]]:
    """Return the members' weights with their files, and the notes of their logits."""
    if members == "aggregated":
        weights, notes = load_tensors(paths[0])
        return [(paths[0], weights)], notes | {"samples": [notes["samples"]]}
    updates = read_updates(paths)
    valid = answered(updates)
    notes = {key: updates[0].notes[key] for key in ("round", "group")}
    samples = [update.notes["samples"] for update in valid]
    return [(update.path, update.weights) for update in valid], notes | {"samples": samples}


def _draw_members(
    settings: Line,
    drawn: Bayesian,
    updates: list[Path],
    aggregated: Path,
    start: Path | None,
    about: dict[str, Any],
) -> tuple[list[tuple[Path, Weights]], dict[str, Any]]:
    """Return models drawn from the clients' distribution, none where no client answered.

    Each stands under the file of the averaged model, and for the training samples of all clients.
    """
    valid = answered(read_updates(updates))
    mean, notes = load_tensors(aggregated)
    if not valid:
        return [], notes | {"samples": []}
    skeleton = new_model(model_of(settings, notes["group"]), about, torch.device("meta"))
    uniform = settings.aggregation.weights == "uniform"
    models = draw(
        drawn,
        [update.weights for update in valid],
        [1.0 if uniform else float(update.notes["samples"]) for update in valid],
        mean,
        load_tensors(start)[0] if start else None,
        [name for name, _ in skeleton.named_parameters()],
        (settings.seed, "logits", notes["round"], notes["group"]),
    )
    samples = [notes["samples"]] * len(models)
    return [(aggregated, model) for model in models], notes | {"samples": samples}
