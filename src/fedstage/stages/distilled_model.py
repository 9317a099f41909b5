"""Stage `distilled_model`: a student learns from a one-shot ensemble on the public images."""

from pathlib import Path

import torch

from fedstage.algorithm.global_trainers.student import teach
from fedstage.algorithm.one_shot.prediction import predict
from fedstage.algorithm.one_shot.transfers import transfer
from fedstage.data.samples import fill_model, new_model, read_info, read_line, read_public
from fedstage.plan.sharing import members
from fedstage.settings.one_shot import OneShotLine
from fedstage.storage.tensors import load_tensors, save_tensors
from fedstage.training.devices import prepare


def distilled_model(
    *,
    line: Path,
    aggregator: Path,
    logits: list[Path],
    start: Path,
    public: Path,
    server_validation: Path | None = None,
    info: Path,
    output: Path,
) -> None:
    """Teach the student what the aggregator says about the public images.

    Parameters
    ----------
    logits : list of Path
        What the members say about the public images.
    start : Path
        The student's initial weights.
    server_validation : Path, optional
        The server's own labelled images, where the student is judged by them.

    Raises
    ------
    FedstageError
        If the student diverges.
    """
    settings = read_line(line, OneShotLine)
    assert settings.distillation is not None, "checked by the catalogue: a student has a transfer"
    assert settings.server is not None, "checked by OneShotLine"
    device, about = prepare(settings.numerics), read_info(info)
    images = read_public(public, about, device)
    said = torch.stack([load_tensors(path)[0]["logits"] for path in logits]).to(device)
    teacher = predict(settings.aggregator, load_tensors(aggregator)[0], said, images, about)
    how = transfer(settings.distillation)
    model = new_model(settings.student, about, device, settings.numerics)
    fill_model(model, load_tensors(start)[0], start)
    weights, learnt = teach(
        model,
        images,
        how.targets(settings.distillation, teacher, said),
        how.loss(settings.distillation, settings.server),
        settings.server,
        settings.numerics,
        about,
        (settings.seed, "distilled_model"),
        "distilled model",
        server_validation,
    )
    save_tensors(output, weights, {"members": members(settings)} | learnt)
