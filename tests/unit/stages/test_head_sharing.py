"""Transfer of heads: the stage on files, and rounds of recipes whose models share their heads."""

import pytest
import torch
from tests.shared.settings import federated
from tests.shared.stages import call_with as call
from tests.shared.stages import head_sharing, make_all
from tests.shared.stages import recipe as write_recipe

from fedstage.data.participation import draw_groups
from fedstage.models.heads import BODY, HEAD
from fedstage.plan import data_files
from fedstage.plan.training import aggregated_model, global_model, updates
from fedstage.protocol.digests import as_json, canonical
from fedstage.protocol.groups import client_groups
from fedstage.settings.equivalences import simplest
from fedstage.settings.recipes import Recipe
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import load_tensors, save_tensors

ROUNDS = 3


def small(width):
    return {"cnn_small": {"width": width, "hidden": 5, "head": {"hidden": 6, "width": 4}}}


BASE = federated(
    data={"digits": {"test": 1500, "held_out": 40}},
    partition={"dirichlet": {"alpha": 1.0, "min_samples": 20}},
    participation="by_samples",
    client_groups="drawn",
    model=small(4),
    aggregation={"weights": "uniform"},
    client={"epochs": 2, "batch_size": 16, "learning_rate": 0.1},
    server={"steps": 4, "batch_size": 16, "learning_rate": 0.1},
    numerics={"device": "cpu"},
    seed=2,
)
FEDET = {
    "global_models": 3,
    "architectures": [small(4), small(3), small(2)],
    "server_model": True,
    "head_sharing": True,
    "ensemble": {"clients": {"weights": "confidence", "average": "probabilities"}},
    "global": "designated",
    "distillation": "fedet",
}


# --- the stage ------------------------------------------------------------------------------------


def tensors(value, prefix=""):
    names = (f"{BODY}.conv1.weight", f"{HEAD}.classifier.weight", f"{HEAD}.classifier.bias")
    return {f"{prefix}{name}": torch.full((2,), float(value)) for name in names}


def written(folder):
    """Write the settings of some run, which this stage does not read; return their file."""
    write_recipe(
        settings=as_json(canonical(Recipe.model_validate(BASE))), output=folder / "recipe.yaml"
    )
    return folder / "recipe.yaml"


@pytest.fixture
def transferred(tmp_path):
    """A function that calls the stage for a model of ones and these heads."""

    def transfer(*heads):
        save_tensors(tmp_path / "model.safetensors", tensors(1), {"round": 0, "samples": 7})
        paths = []
        for number, (weights, metadata) in enumerate(heads):
            paths.append(tmp_path / f"{number}.safetensors")
            save_tensors(paths[-1], weights, metadata)
        head_sharing(
            recipe=written(tmp_path), round=2, group=0, model=tmp_path / "model.safetensors",
            heads=paths, output=tmp_path / "output.safetensors",
        )  # fmt: skip
        return load_tensors(tmp_path / "output.safetensors")

    return transfer


def update(value, participant=0):
    return tensors(value, "model/"), {"client": participant, "samples": 10 ** (participant + 1)}


EMPTY = {}, {"client": None}
DROPPED = {}, {"client": 3, "samples": 5, "diverged_at": 2}


def test_a_model_takes_the_plain_mean_of_heads_and_keeps_its_body(transferred):
    """Whatever the samples behind each, and whatever participants are empty and updates dropped."""
    model, metadata = transferred(update(2, 0), EMPTY, update(5, 1), DROPPED)
    assert torch.equal(model["body.conv1.weight"], torch.full((2,), 1.0))
    for name in ("head.classifier.weight", "head.classifier.bias"):
        assert torch.equal(model[name], torch.full((2,), 3.5))
    assert metadata == {"round": 2, "group": 0, "samples": 7}


# --- in rounds ------------------------------------------------------------------------------------


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """A function that trains a recipe, and returns its normalised settings."""
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)  # as stages do; more only cost time on tensors this small

    def train(same_start=False, **changes):
        recipe = simplest(Recipe.model_validate(BASE | changes))
        groups = range(recipe.global_models)
        starts = [global_model(recipe, 0, group).job for group in groups]
        make_all(data_files.data_file(recipe.data, "info"))
        for job in starts if same_start else ():
            files = job.inputs | job.files
            call("initial_model", files, settings=as_json(canonical(job.config)), group=1)
        make_all(*(global_model(recipe, ROUNDS, group) for group in groups))
        return recipe

    return train


def read(path):
    return load_tensors(path)[0]


def parts(model, prefix):
    return {name: value for name, value in model.items() if name.startswith(f"{prefix}.")}


def same(one, other):
    assert one.keys() == other.keys()
    return all(torch.equal(one[name], other[name]) for name in one)


def models(recipe, round_):
    return [read(global_model(recipe, round_, group)) for group in range(recipe.global_models)]


def test_after_every_round_all_models_have_the_servers_head_bit_for_bit(trained):
    recipe = trained(**FEDET)
    for round_ in range(1, ROUNDS + 1):
        server, *others = models(recipe, round_)
        taught = parts(server, HEAD)
        assert all(same(parts(model, HEAD), taught) for model in others)
        begun = read(aggregated_model(recipe, round_, 0))
        sent = [read(path) for k in (1, 2) for path in updates(recipe, round_, k)]
        for name, head in parts(begun, HEAD).items():
            mean = torch.stack([update[f"model/{name}"] for update in sent if update]).mean(0)
            assert torch.allclose(head, mean, atol=1e-6)  # of all participants, in either group
        assert not same(parts(begun, HEAD), taught)  # it has learnt since
        before = models(recipe, round_ - 1)[0]
        assert same(parts(begun, BODY), parts(before, BODY))
        assert not same(parts(before, BODY), parts(server, BODY))


def test_an_architecture_without_participants_keeps_its_body_and_takes_the_head(trained):
    recipe = trained(**FEDET)
    group_of = draw_groups(recipe.clients, 2, recipe.seed)
    table = load_table(data_files.participation_table(recipe, 1)).to_pylist()
    absences = together = 0
    for round_ in range(1, ROUNDS + 1):
        clients = {row["client"] for row in table if row["round"] == round_} - {None}
        present = {1 + group_of[client] for client in clients}
        for group in client_groups(recipe):
            before, after = (models(recipe, t)[group] for t in (round_ - 1, round_))
            assert same(parts(before, BODY), parts(after, BODY)) == (group not in present)
            assert not same(parts(before, HEAD), parts(after, HEAD))
            absences += group not in present
        together += len(present) == 2
    assert absences > 0
    assert together > 0  # or the heads of one group would be all heads
