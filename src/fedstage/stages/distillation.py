"""Stage `distillation`: an averaged model w_{t,k} learns from an ensemble; gives w*_{t,k}."""

from pathlib import Path

from fedstage.artefacts import load_tensors, save_tensors
from fedstage.config import Line
from fedstage.engine.batches import public_batches
from fedstage.engine.devices import prepare
from fedstage.engine.training import train
from fedstage.ensemble_trainers import teacher_logits
from fedstage.errors import FedstageError
from fedstage.global_trainers.distillation import distillation_loss
from fedstage.members import read_members
from fedstage.randomness import torch_generator
from fedstage.reading import fill_model, new_model, read_info, read_line, read_public, state_of


def distillation(
    *, line: Path, start: Path, logits: list[Path], public: Path, info: Path, output: Path
) -> None:
    """Distil the ensemble whose members' logits are given into the model `start`.

    Raises
    ------
    FedstageError
        If the student diverges, or no member of the ensemble is left.
    """
    settings = read_line(line, Line)
    assert settings.server is not None, "checked by Line: a global trainer has server settings"
    assert settings.ensemble is not None, "checked by Line: a global trainer has an ensemble"
    device = prepare(settings.numerics)
    weights, notes = load_tensors(start)
    teacher = teacher_logits(settings.ensemble, read_members(logits)).to(device)
    about = read_info(info)
    images = read_public(public, about, device)
    model = new_model(settings.model, about, device)
    fill_model(model, weights, start)
    key = (settings.seed, "distillation", notes["round"], notes["group"])
    server = settings.server
    outcome = train(
        model,
        images,
        teacher,
        public_batches(
            len(images), server.batch_size, server.steps, torch_generator(*key, "batches")
        ),
        server,
        distillation_loss(server),
        about,
        torch_generator(*key, "augmentation"),
    )
    if outcome.diverged_at is not None:
        raise FedstageError(
            f"distillation, round {notes['round']}, group {notes['group']}: the loss is not finite "
            f"at step {outcome.diverged_at}; lower server.learning_rate = {server.learning_rate}"
        )
    save_tensors(output, state_of(model), notes | {"loss": outcome.loss})
