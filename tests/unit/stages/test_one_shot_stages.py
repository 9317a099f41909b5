"""One-shot stages on real files: from clients that train to the end to what is predicted."""

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.shared.settings import one_shot
from tests.shared.stages import (
    aggregator,
    client_logits,
    dataset,
    distilled_model,
    initial_model,
    local_evaluation,
    local_model,
    one_shot_evaluation,
    partition,
    quantised_model,
    recipe,
)

from fedstage.algorithm.measures.metrics import METRICS_SCHEMA
from fedstage.algorithm.one_shot.traffic import ROUNDS_SCHEMA
from fedstage.plan import data_files
from fedstage.plan.one_shot_sharing import local_recipe
from fedstage.protocol.digests import as_json, canonical
from fedstage.protocol.one_shot import members
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.one_shot_clients import Int8
from fedstage.storage.files import load_json
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import load_tensors, save_tensors

LINEAR = {"name": "logistic_regression"}
CNN = {"name": "cnn_small", "width": 2, "hidden": 6}
ROUNDS = {"federated": {"rounds": 4, "batch_size": 8, "learning_rate": 0.1}}
SETTINGS = one_shot(
    data={"name": "digits", "test": 70, "held_out": 30, "server_validation": 40},
    partition={"name": "dirichlet", "alpha": 1.0, "min_samples": 30},
    validation=0.1,
    aggregator_fraction=0.2,
    model=LINEAR,
    architectures=[LINEAR, CNN],
    client={"learning_rate": 0.05, "batch_size": 16, "epochs": 2},
    numerics={"device": "cpu"},
    seed=3,
)
MODEL_BYTES = {"logistic_regression": 4 * 650, "cnn_small": 4 * (20 + 76 + 102 + 70)}


@dataclass(frozen=True)
class World:
    """What aggregators start from: data, partition and four clients' models."""

    folder: Path

    def data(self, part):
        return self.folder / f"{part}.safetensors"

    @property
    def info(self):
        return self.folder / "info.json"

    @property
    def clients(self):
        return self.folder / "clients.parquet"

    @property
    def histogram(self):
        return self.folder / "histogram.parquet"

    def model(self, client):
        return self.folder / f"client_{client}.safetensors"

    def labels(self, part="train"):
        return load_tensors(self.data(part))[0]["labels"].numpy()

    def rows(self, role, client=None):
        rows = load_table(self.clients).to_pylist()
        return [r["sample"] for r in rows if r["role"] == role and client in (None, r["client"])]

    def said(self, images, clients):
        """Logits [clients, n, 10] of test or other images."""
        return np.stack([load_tensors(self.logits(c, images))[0]["logits"] for c in clients])

    def logits(self, client, images):
        return self.folder / f"client_{client}-{images}.safetensors"


def settings_of(**changes):
    return OneShotRecipe.model_validate(SETTINGS | changes)


def written(path, settings):
    recipe(settings=as_json(canonical(settings)), output=path)
    return path


def speak(world, client, images, source, by_role=False):
    client_logits(
        recipe=world.folder / "local.yaml", model=world.model(client), images=images,
        data=world.data(source), info=world.info, clients=world.clients if by_role else None,
        output=world.logits(client, images),
    )  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("one_shot"))
    parts = ("train", "test", "held_out", "server_validation")
    files = {part: made.data(part) for part in parts}
    dataset(settings=json.dumps(SETTINGS["data"]), info=made.info, **files)
    tensors, _ = load_tensors(made.data("train"))
    save_tensors(made.data("train"), {name: value[:400] for name, value in tensors.items()})
    local = local_recipe(settings_of())
    partition(
        settings=as_json(canonical(data_files.clients_table(local).job.config)),
        train=made.data("train"),
        output=made.clients, histogram=made.histogram,
    )  # fmt: skip
    written(made.folder / "local.yaml", local)
    int8 = local.model_copy(update={"quantisation": Int8(name="int8")})
    written(made.folder / "int8.yaml", int8)
    for client in range(4):
        model = CNN if client % 2 else LINEAR
        start = made.folder / f"start_{client}.safetensors"
        chosen = json.dumps({"model": model, "seed": 3})
        initial_model(settings=chosen, group=0, info=made.info, output=start)
        local_model(
            recipe=made.folder / "local.yaml", who=f"client_{client}", data=made.data("train"),
            info=made.info, clients=made.clients, start=start, output=made.model(client),
        )  # fmt: skip
        speak(made, client, "test", "test")
        speak(made, client, "server_validation", "server_validation")
        for role in ("aggregator", "validation"):
            speak(made, client, role, "train", by_role=True)
    return made


@dataclass(frozen=True)
class Made:
    """What the stage `aggregator` has written."""

    recipe: Path
    parameters: dict
    notes: dict
    rounds: list
    files: tuple


def aggregated(world, folder, fitted="aggregator", data="train", judged=False, **changes):
    settings = settings_of(**changes)
    clients = members(settings)
    folder.mkdir(exist_ok=True)
    output, rounds = folder / "aggregator.safetensors", folder / "rounds.parquet"
    snapshots = folder / "snapshots.safetensors"
    path = written(folder / "recipe.yaml", settings)
    read = {"logits": [world.logits(c, fitted) for c in clients], "data": world.data(data)}
    read = read if fitted else {}
    if judged:
        read["validation_logits"] = [world.logits(c, "validation") for c in clients]
        read["validation"] = world.data("train")
    aggregator(
        recipe=path, models=[world.model(c) for c in clients], clients=world.clients,
        histogram=world.histogram, info=world.info, output=output, snapshots=snapshots,
        rounds=rounds, **read,
    )  # fmt: skip
    parameters, notes = load_tensors(output)
    table = load_table(rounds)
    assert table.schema.remove_metadata() == ROUNDS_SCHEMA
    return Made(path, parameters, notes, table.to_pylist(), (output, rounds, snapshots))


def later_rows(metrics):
    """The metrics of an aggregator during its training, beside those of its end."""
    return metrics.with_stem(f"{metrics.stem}_over_rounds")


def evaluated(world, made, role="test", clients=None):
    settings_file, (parameters, rounds, snapshots) = made.recipe, made.files
    output = parameters.with_name(f"{role}.parquet")
    one_shot_evaluation(
        recipe=settings_file, role=role, aggregator=parameters, snapshots=snapshots,
        info=world.info,
        logits=[world.logits(c, role) for c in clients or made.notes["members"]],
        data=world.data("test" if role == "test" else "train"), clients=world.clients,
        histogram=world.histogram, rounds=[rounds], output=output, over_rounds=later_rows(output),
    )  # fmt: skip
    table = load_table(output)
    assert table.schema.remove_metadata() == METRICS_SCHEMA
    (row,) = table.to_pylist()
    return row


def accuracy(logits, labels):
    return 100 * float((logits.argmax(1) == labels).mean())


def rightly(world, client):
    """How much of its own validation samples the model of a client is right about."""
    samples, every = world.rows("validation", client), world.rows("validation")
    rows = [every.index(sample) for sample in samples]
    said = world.said("validation", [client])[0]
    return accuracy(said[rows], world.labels()[samples])


def trained_samples(world, client):
    return len(world.rows("train", client))


# --- which models ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "known"), [("best", rightly), ("largest", trained_samples)])
def test_only_chosen_models_predict_teach_and_travel(world, tmp_path, kind, known):
    values = [known(world, client) for client in range(4)]
    assert len(set(values)) == 4
    expected = sorted(np.argsort(values)[-2:].tolist())
    members = {kind: {"count": 2}}
    made = aggregated(world, tmp_path, fitted=None, judged=kind == "best", members=members)
    assert made.notes["members"] == expected
    row = evaluated(world, made, clients=range(4))
    said = world.said("test", expected).mean(0)
    assert row["top1_accuracy"] == pytest.approx(accuracy(said, world.labels("test")))
    alone = [accuracy(one, world.labels("test")) for one in world.said("test", expected)]
    assert row["ensemble_gain"] == pytest.approx(row["top1_accuracy"] - np.mean(alone))
    one, other = world.said("test", expected).argmax(2)
    assert row["disagreement"] == pytest.approx(100 * np.mean(one != other))
    sent = max(MODEL_BYTES["cnn_small" if c % 2 else "logistic_regression"] for c in expected)
    own = {row["phase"]: (row["participants"], row["bytes_up"]) for row in made.rounds}
    assert own["selection"] == (4, 4)
    assert own["local_model"] == (2, sent)
    assert row["bytes_up"] == 4 + sent // 2
    assert row["bytes_down"] == max(MODEL_BYTES.values())


def test_a_trained_aggregator_is_one_of_the_chosen_models(world, tmp_path):
    chosen = {"aggregator": "linear", "aggregator_training": ROUNDS}
    made = aggregated(world, tmp_path, judged=True, members={"best": {"count": 2}}, **chosen)
    assert made.parameters["weights"].shape == (2,)
    assert {row["participants"] for row in made.rounds if row["phase"] == "round"} == {4}
    sizes = [MODEL_BYTES["cnn_small" if c % 2 else "logistic_regression"] for c in range(4)]
    ensemble = [row["bytes_down"] for row in made.rounds if row["phase"] == "ensemble"]
    assert ensemble == [sum(sizes[client] for client in made.notes["members"])]
    whole = aggregated(
        world, tmp_path / "all", judged=True, members={"best": {"count": 4}}, **chosen
    )
    plain = aggregated(world, tmp_path / "plain", **chosen)
    assert torch.equal(whole.parameters["weights"], plain.parameters["weights"])


# --- clients' models and what they say ------------------------------------------------------------


def test_clients_train_on_their_training_part_and_keep_their_own_architecture(world):
    for client in range(4):
        weights, notes = load_tensors(world.model(client))
        assert notes["samples"] == len(world.rows("train", client))
        assert ("conv1.weight" in weights) == bool(client % 2)


def test_logits_are_of_the_rows_of_a_role_of_all_clients_in_the_order_of_the_partition(world):
    weights = load_tensors(world.model(2))[0]
    info = load_json(world.info)
    images = load_tensors(world.data("train"))[0]["images"][world.rows("aggregator")]
    pixels = (images.double() / 255 - info["mean"][0]) / info["std"][0]
    expected = pixels.flatten(1) @ weights["linear.weight"].double().T + weights["linear.bias"]
    found = world.said("aggregator", [2])[0]
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-4)
    assert found.shape == (len(world.rows("aggregator")), 10)


# --- aggregators ----------------------------------------------------------------------------------


def test_averaging_reads_no_samples_and_writes_no_parameters(world, tmp_path):
    made = aggregated(world, tmp_path, fitted=None, aggregator="averaging")
    assert made.parameters == {}
    assert made.notes == {"members": [0, 1, 2, 3], "round": 0}
    row = evaluated(world, made)
    expected = world.said("test", range(4)).mean(0)
    assert row["top1_accuracy"] == accuracy(expected, world.labels("test"))
    assert (row["round"], row["evaluated"], row["participants"]) == (1, "aggregator", 4)


def counts(world, clients):
    labels = world.labels()
    return np.stack([np.bincount(labels[world.rows("train", c)], minlength=10) for c in clients])


def test_label_counts_are_those_of_the_samples_that_models_were_trained_on(world, tmp_path):
    made = aggregated(world, tmp_path, fitted=None, aggregator="weighted")
    own = counts(world, range(4))
    np.testing.assert_allclose(made.parameters["weights"], own / own.sum(0), rtol=1e-6)
    expected = (own[:, None] / own.sum(0) * world.said("test", range(4))).sum(0)
    row = evaluated(world, made)
    assert row["top1_accuracy"] == accuracy(expected, world.labels("test"))


def test_clients_train_on_their_own_aggregator_part_only(world, tmp_path):
    """One round, whole clients as batches, samples as weights: a step on all rows of the role."""
    training = {
        "rounds": 1, "batch_size": 10_000, "learning_rate": 0.5, "weights": "samples",
        "server_optimizer": "average",
    }  # fmt: skip
    made = aggregated(
        world, tmp_path, aggregator="per_class", aggregator_training={"federated": training}
    )
    said = torch.as_tensor(world.said("aggregator", range(4))).double()
    labels = torch.as_tensor(world.labels()[world.rows("aggregator")])
    start = torch.full((4, 10), 0.25, dtype=torch.float64, requires_grad=True)
    loss = torch.nn.functional.cross_entropy(torch.einsum("mc,mnc->nc", start, said), labels)
    (slope,) = torch.autograd.grad(loss, start)
    assert torch.allclose(made.parameters["weights"].double(), start - 0.5 * slope, atol=1e-6)
    trained = [row for row in made.rounds if row["phase"] == "round"]
    assert [(row["round"], row["participants"]) for row in trained] == [(1, 4)]


def test_the_aggregator_is_scored_during_its_training(world, tmp_path):
    """After rounds 5 and 10 of 12, by what shorter trainings end in; nothing is chosen by it."""
    ten = ROUNDS["federated"] | {"rounds": 12}
    made = aggregated(
        world, tmp_path / "12", aggregator="mlp", aggregator_training={"federated": ten}
    )
    row = evaluated(world, made)
    later = load_table(later_rows(tmp_path / "12" / "test.parquet")).to_pylist()
    assert [one["round"] for one in later] == [5, 10]
    for one in later:
        short = aggregated(
            world, tmp_path / str(one["round"]), aggregator="mlp",
            aggregator_training={"federated": ten | {"rounds": one["round"]}},
        )  # fmt: skip
        ended = evaluated(world, short)
        scores = ("top1_accuracy", "balanced_accuracy", "loss", "evaluated", "role")
        assert [one[key] for key in scores] == [ended[key] for key in scores]
    assert row["loss"] not in [one["loss"] for one in later]


def test_validation_samples_are_scored_as_a_role(world, tmp_path):
    made = aggregated(world, tmp_path, aggregator="linear", aggregator_training=ROUNDS)
    row = evaluated(world, made, role="validation")
    assert row["role"] == "validation"
    assert row["samples"] == len(world.rows("validation"))


# --- forgetting -----------------------------------------------------------------------------------


def test_nothing_of_a_forgotten_client_is_read(world, tmp_path):
    """Its rows, models and counts may be anything: the aggregator is the same."""
    one = aggregated(
        world, tmp_path / "one", aggregator="mlp", aggregator_training=ROUNDS, forget=[1]
    )
    noise = World(tmp_path / "noise")
    noise.folder.mkdir()
    for path in world.folder.iterdir():
        (noise.folder / path.name).write_bytes(path.read_bytes())
    noise.model(1).unlink()
    for images in ("aggregator", "test"):
        noise.logits(1, images).unlink()
    tensors, notes = load_tensors(world.data("train"))
    labels = tensors["labels"].clone()
    labels[world.rows("aggregator", 1)] = 0
    save_tensors(noise.data("train"), tensors | {"labels": labels}, notes)
    other = aggregated(
        noise, tmp_path / "other", aggregator="mlp", aggregator_training=ROUNDS, forget=[1]
    )
    assert one.notes["members"] == [0, 2, 3]
    assert one.files[0].read_bytes() == other.files[0].read_bytes()
    changed = aggregated(noise, tmp_path / "c", fitted=None, aggregator="averaging", forget=[1])
    expected = world.said("test", [0, 2, 3]).mean(0)
    assert evaluated(world, changed)["top1_accuracy"] == accuracy(expected, world.labels("test"))


# --- students -------------------------------------------------------------------------------------

WHOLE = {"steps": 3, "batch_size": 1000, "learning_rate": 0.1}


def taught(world, folder, part="held_out", **changes):
    """Teach a linear student with all of the public images; return its file and its recipe."""
    settings = settings_of(**{"server": WHOLE, "student": LINEAR, **changes})
    for client in range(4):
        speak(world, client, part, part)
    made = aggregated(world, folder, fitted=None, aggregator=changes["aggregator"])
    path, output = written(folder / "student.yaml", settings), folder / "model.safetensors"
    distilled_model(
        recipe=path, aggregator=made.files[0], start=world.folder / "start_0.safetensors",
        logits=[world.logits(c, part) for c in range(4)], public=world.data(part),
        info=world.info, output=output,
    )  # fmt: skip
    return made, path, output


def pixels_of(world, part):
    info = load_json(world.info)
    images = load_tensors(world.data(part))[0]["images"].double()
    return ((images / 255 - info["mean"][0]) / info["std"][0]).flatten(1)


@pytest.mark.parametrize(
    ("aggregator", "distillation"),
    [("weighted", "l1"), ("averaging", "l2"), ("averaging", "kl")],
    ids=str,
)
def test_a_student_takes_the_steps_of_its_transfer(
    world, tmp_path, caplog, aggregator, distillation
):
    with caplog.at_level("INFO", "fedstage.algorithm"):
        made, _, output = taught(world, tmp_path, aggregator=aggregator, distillation=distillation)
    said = torch.as_tensor(world.said("held_out", range(4))).double()
    weights = made.parameters.get("weights", torch.full((4, 10), 0.25)).double()
    teacher = torch.einsum("mc,mnc->nc", weights, said)
    start = load_tensors(world.folder / "start_0.safetensors")[0]
    model = torch.nn.Linear(64, 10).double()
    model.load_state_dict({"weight": start["linear.weight"], "bias": start["linear.bias"]})
    sgd, x = torch.optim.SGD(model.parameters(), lr=0.1), pixels_of(world, "held_out")
    for _ in range(3):
        sgd.zero_grad()
        if distillation == "l1":
            loss = (model(x) - teacher).abs().mean()
        elif distillation == "l2":
            loss = (model(x) - teacher).square().mean()
        else:
            own, other = (model(x) / 4).log_softmax(1), (teacher / 4).log_softmax(1)
            loss = 16 * (other.exp() * (other - own)).sum(1).mean()
        loss.backward()
        sgd.step()
    found, notes = load_tensors(output)
    assert torch.allclose(found["linear.weight"].double(), model.weight, atol=1e-5)
    assert notes["members"] == [0, 1, 2, 3]
    (row,) = [record.distilled for record in caplog.records if hasattr(record, "distilled")]
    agreement = 100 * (model(x).argmax(1) == teacher.argmax(1)).double().mean()
    assert row["agreement"] == pytest.approx(float(agreement))
    assert (row["round"], row["samples"]) == (1, len(x))


def test_a_student_is_scored_by_itself_and_books_what_travelled(world, tmp_path):
    made, path, output = taught(world, tmp_path, aggregator="weighted", distillation="fedet")
    metrics = tmp_path / "metrics.parquet"
    one_shot_evaluation(
        recipe=path, role="test", student=output, data=world.data("test"), info=world.info,
        clients=world.clients, histogram=world.histogram, rounds=[made.files[1]], output=metrics,
        over_rounds=later_rows(metrics),
    )  # fmt: skip
    (row,) = load_table(metrics).to_pylist()
    weights = load_tensors(output)[0]
    said = pixels_of(world, "test") @ weights["linear.weight"].double().T + weights["linear.bias"]
    assert row["top1_accuracy"] == accuracy(said.numpy(), world.labels("test"))
    assert row["evaluated"] == "distilled_model"
    assert row["bytes_up"] == LARGE + 4 * 10


# --- traffic --------------------------------------------------------------------------------------

SMALL, LARGE = sorted(MODEL_BYTES.values())
ENSEMBLE = 2 * (SMALL + LARGE) - SMALL  # all models but the client's own, for who has a small one


def phases(made):
    return [(row["phase"], row["round"], row["bytes_up"], row["bytes_down"]) for row in made.rounds]


def test_models_travel_once_where_nothing_is_fitted_on_clients(world, tmp_path):
    made = aggregated(world, tmp_path, fitted=None, aggregator="averaging")
    assert phases(made) == [("initial_model", 0, 0, LARGE), ("local_model", 0, LARGE, 0)]
    row = evaluated(world, made)
    assert (row["bytes_up"], row["bytes_down"]) == (LARGE, LARGE)


def test_rounds_move_the_aggregator_both_ways(world, tmp_path):
    made = aggregated(world, tmp_path, aggregator="mlp", aggregator_training=ROUNDS)
    size = 4 * (40 * 40 + 40 * 10)
    rounds = [("round", number, size, size) for number in range(1, 5)]
    assert phases(made)[2:] == [("ensemble", 0, 0, ENSEMBLE), *rounds]
    row = evaluated(world, made)
    assert row["bytes_up"] == LARGE + 4 * size
    assert row["bytes_down"] == LARGE + ENSEMBLE + 4 * size


# --- quantised models -----------------------------------------------------------------------------

needs_torchao = pytest.mark.skipif(
    find_spec("torchao") is None, reason="torchao, of the extra `int8`, is not installed"
)


def quantised(world, output, client, train=None):
    quantised_model(
        recipe=world.folder / "int8.yaml", model=world.model(client),
        data=train or world.data("train"), info=world.info, clients=world.clients, output=output,
    )  # fmt: skip
    return output


@pytest.fixture(scope="module")
def rough(world, tmp_path_factory):
    """The four clients' quantised models."""
    folder = tmp_path_factory.mktemp("int8")
    return [quantised(world, folder / f"client_{c}.safetensors", c) for c in range(4)]


def rough_logits(world, model, output, images="test"):
    client_logits(
        recipe=world.folder / "int8.yaml", model=model, images=images, data=world.data(images),
        info=world.info, output=output,
    )  # fmt: skip
    return load_tensors(output)


@needs_torchao
def test_only_training_samples_of_the_client_calibrate(world, rough, tmp_path):
    """With its own images darker, the range is theirs, whatever images others have."""
    tensors, notes = load_tensors(world.data("train"))
    dark, own = tensors["images"] // 2, world.rows("train", 0)
    mixed = tensors["images"].clone()
    mixed[own] = dark[own]
    files = []
    for name, images in (("mixed", mixed), ("dark", dark)):
        save_tensors(tmp_path / f"{name}.safetensors", tensors | {"images": images}, notes)
        source = tmp_path / f"{name}.safetensors"
        files.append(quantised(world, tmp_path / name, 0, source).read_bytes())
    assert files[0] == files[1] != rough[0].read_bytes()


@needs_torchao
def test_so_many_samples_calibrate(world, rough, tmp_path, monkeypatch):
    own = world.rows("train", 0)
    assert load_tensors(rough[0])[1]["calibrated_on"] == min(256, len(own))
    monkeypatch.setattr("fedstage.stages.local_models.CALIBRATED_ON", 3)
    tensors, notes = load_tensors(quantised(world, tmp_path / "few", 0))
    assert notes == {
        "client": 0, "samples": len(own), "calibrated_on": 3, "ranges": 1,
        "quantisation": {"name": "int8"},
    }  # fmt: skip
    all_own = load_tensors(rough[0])[0]
    assert torch.equal(tensors["linear.weight"], all_own["linear.weight"])
    assert tensors["linear.weight.input_scale"] <= all_own["linear.weight.input_scale"]


@needs_torchao
def test_the_ensemble_travels_in_int8_and_the_clients_own_models_do_not(world, rough, tmp_path):
    settings = settings_of(aggregator="voting", quantisation="int8")
    output, rounds = tmp_path / "aggregator.safetensors", tmp_path / "rounds.parquet"
    aggregator(
        recipe=written(tmp_path / "recipe.yaml", settings),
        models=[world.model(c) for c in range(4)],
        quantised=rough, logits=[world.logits(c, "aggregator") for c in range(4)],
        data=world.data("train"), clients=world.clients, histogram=world.histogram,
        info=world.info, output=output, snapshots=tmp_path / "snapshots.safetensors", rounds=rounds,
    )  # fmt: skip
    sizes = [
        sum(value.numel() * value.element_size() for value in load_tensors(path)[0].values())
        for path in rough
    ]
    # int8 weights and their float32 scales, biases, a scale and a zero point of each input.
    assert sizes[0] == 640 + 4 * 10 + 4 * 10 + 5
    rows = [
        (row["phase"], row["bytes_up"], row["bytes_down"]) for row in load_table(rounds).to_pylist()
    ]
    assert rows == [
        ("initial_model", 0, LARGE), ("local_model", LARGE, 0),
        ("activation_ranges", 8 * 4, 0),  # of two convolutions and two linear layers
        ("ensemble", 0, sum(sizes) - min(sizes)), ("votes", 4 * 4 * 100, 0),
    ]  # fmt: skip


@needs_torchao
def test_single_quantised_models_are_scored_as_they_are(world, rough, tmp_path):
    row = rough_scores(world, tmp_path, "each_client", rough)
    said = [rough_logits(world, path, tmp_path / "l")[0]["logits"].numpy() for path in rough]
    own = [accuracy(logits, world.labels("test")) for logits in said]
    assert row["top1_accuracy"] == pytest.approx(np.mean(own))
    assert row["evaluated"] == "each_client"
    for client, path in enumerate(rough):
        alone = rough_scores(world, tmp_path, f"client_{client}", [path])
        assert alone["top1_accuracy"] == pytest.approx(own[client])
        assert (alone["evaluated"], alone["client_std"]) == (f"client_{client}", None)


def rough_scores(world, folder, who, models):
    output = folder / "metrics.parquet"
    local_evaluation(
        recipe=world.folder / "int8.yaml", rounds=1, role="test", who=who, models=models,
        data=world.data("test"), info=world.info, clients=world.clients,
        histogram=world.histogram, output=output,
    )  # fmt: skip
    (row,) = load_table(output).to_pylist()
    return row
