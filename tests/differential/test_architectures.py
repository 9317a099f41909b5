"""Groups of different architectures (FedEED, A.5): one teacher, a student of each architecture."""

import json
from pathlib import Path

import pytest
import torch
from tests.shared.graph import teaching_logits
from tests.shared.stages import initial_model, logits_segment, participation, partition, segment

from fedstage.algorithm.global_trainers.distillation import distillation_loss
from fedstage.models.build import build
from fedstage.plan import data_files
from fedstage.plan.digests import as_json, canonical
from fedstage.plan.taught import is_distilled
from fedstage.plan.training import AGGREGATION, aggregated_model, global_model
from fedstage.plan.training_folder import public_file, training_folder
from fedstage.randomness import torch_generator
from fedstage.settings.lines import Line
from fedstage.stages.dataset import dataset
from fedstage.stages.line import line as write_line
from fedstage.storage.files import load_json
from fedstage.storage.tensors import load_tensors
from fedstage.training.batches import public_batches
from fedstage.training.loop import train

CNN = {"cnn_small": {"width": 2, "hidden": 6, "norm": "batch"}}
BASE = {
    "data": {"digits": {"test": 1400, "held_out": 50}},
    "clients": 5,
    "partition": "iid",
    "participants": 4,
    "model": "logistic_regression",
    "global_models": 3,
    "architectures": ["logistic_regression", CNN, CNN],
    "client": {"epochs": 1, "batch_size": 16, "learning_rate": 0.1},
    "ensemble": {"aggregated": {"checkpoints": 2}},
    "global": {"designated": {"main": "per_architecture"}},
    "server": {"steps": 5, "batch_size": 20, "learning_rate": 0.05},
    "numerics": {"device": "cpu"},
    "seed": 2,
}


@pytest.fixture
def start(tmp_path, monkeypatch):
    """A function that makes what the rounds of a line start from, and runs them."""
    monkeypatch.chdir(tmp_path)

    def run(rounds, **changes):
        line = Line.model_validate(BASE | changes)
        parts = ("train", "test", "held_out", "info")
        files = {part: Path(data_files.data_file(line.data, part)) for part in parts}
        dataset(settings=as_json(canonical(line.data)), **files)
        partition(
            settings=json.dumps(data_files.clients_table(line).job.settings), train=files["train"],
            output=Path(data_files.clients_table(line)),
            histogram=Path(data_files.label_histogram(line)),
        )  # fmt: skip
        participation(
            clients=5, participants=4, seed=2, first=1, last=100,
            output=Path(data_files.participation_table(line, 1)),
        )  # fmt: skip
        for group, model in enumerate(line.architectures):
            settings = as_json({"model": canonical(model), "seed": 2})
            output = Path(global_model(line, 0, group))
            initial_model(settings=settings, group=group, info=files["info"], output=output)
        for round in range(1, rounds + 1):
            run_round(line, round)
        return line

    return run


def run_round(line, round):
    """Train groups that other lines own in segments of theirs, and then the students."""
    groups = range(line.global_models)
    students = [group for group in groups if is_distilled(line, round, group)]
    others = [group for group in groups if AGGREGATION.job(line, round, group).config != line]
    for group in others:
        segment(
            line=written(AGGREGATION.job(line, round, group).config),
            first=round,
            last=round,
            groups=[group],
        )
        for members, images in teaching_logits(line) if students else ():
            logits_segment(
                line=written(line), rounds=[round], group=group, members=members, images=images
            )
    own = [group for group in groups if group in students or group not in others]
    segment(line=written(line), first=round, last=round, groups=own)


def written(line):
    """Return the file of a line's settings, once it is written."""
    path = Path(f"{training_folder(line)}/line.yaml")
    if not path.exists():
        write_line(settings=as_json(canonical(line)), output=path)
    return path


def model_in(line, group, path):
    info = load_json(data_files.data_file(line.data, "info"))
    model = build(line.architectures[group], tuple(info["shape"]), info["classes"])
    tensors, _ = load_tensors(path)
    model.load_state_dict(tensors)
    return model, info


def public(line):
    return load_tensors(public_file(line))[0]["images"]


def by_hand(line, round, group):
    """Teach a student with the average of all architectures' logits."""
    said, info = [], None
    for past in range(max(1, round - 1), round + 1):
        for other in range(line.global_models):
            model, info = model_in(line, other, aggregated_model(line, past, other))
            pixels = (public(line).float() / 255 - info["mean"][0]) / info["std"][0]
            with torch.no_grad():
                said.append(model.eval()(pixels).double())
    teacher = (sum(said) / len(said)).float()
    student, _ = model_in(line, group, aggregated_model(line, round, group))
    key = (line.seed, "distillation", round, group)
    batches = public_batches(50, 20, 5, torch_generator(*key, "batches"))
    generator, loss = torch_generator(*key, "augmentation"), distillation_loss(line.server)
    train(student, public(line), teacher, batches, line.server, loss, info, generator)
    return student.state_dict()


def test_a_student_of_each_architecture_learns_from_all(start):
    line = start(2)
    for round in (1, 2):
        for group in (0, 1):
            ours, _ = load_tensors(global_model(line, round, group))
            expected = by_hand(line, round, group)
            assert ours.keys() == expected.keys()
            for name, value in expected.items():
                assert torch.allclose(ours[name].double(), value.double(), atol=1e-5), name
        assert global_model(line, round, 2) == aggregated_model(line, round, 2)
    shapes = [len(load_tensors(global_model(line, 2, group))[0]) for group in (0, 1, 2)]
    assert shapes[0] < shapes[1] == shapes[2]


@pytest.mark.parametrize(
    "changes",
    [
        {"ensemble": {"bayesian": {"samples": 2, "variant": "as_released"}}},
        {"ensemble": "clients", "global": "basic", "local": "scaffold"},
        {"aggregation": {"batch_norm": "local"}},
        {"aggregation": {"batch_norm": "re_estimate"}},
    ],
    ids=str,
)
def test_other_parts_of_methods_take_architectures_too(start, changes):
    line = start(2, **changes)
    for group in range(3):
        model, _ = model_in(line, group, global_model(line, 2, group))
        assert all(bool(value.isfinite().all()) for value in model.state_dict().values())
