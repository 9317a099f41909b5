"""Rounds with secure aggregation, from samples to a model; tests/workflow has real runs."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.shared.settings import federated
from tests.shared.stages import make_all

from fedstage.algorithm.secure.steps import STEPS, still_there
from fedstage.plan.graph import File, behind, listed
from fedstage.plan.training import (
    advertise,
    aggregation,
    client_state,
    global_model,
    masked_input,
    participants_table,
    share,
    unmask,
    updates,
)
from fedstage.settings.recipes import Recipe
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import load_tensors

SECURE = {"threshold": 3, "clip": 0.5, "bits": 24, "most_samples": 300}
BASE = federated(
    data={"digits": {"test": 1000, "held_out": 50}},
    clients=5,
    partition={"dirichlet": {"alpha": 1.0, "min_samples": 5}},
    participants=4,
    model="logistic_regression",
    client={"epochs": 1, "batch_size": 32, "learning_rate": 0.05},
)


def of(secure=SECURE, **changes):
    aggregation = changes.pop("aggregation", {}) | ({"secure": secure} if secure else {})
    return Recipe.model_validate(BASE | changes | {"aggregation": aggregation})


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def made(recipe, rounds=1):
    model = global_model(recipe, rounds, 0)
    make_all(model)
    return load_tensors(model)


def dropping(step):
    """Dropouts before a step: by the seed one participant of the first round."""
    return SECURE | {"dropped": {step: 0.25}}


def gone(recipe, step):
    rows = load_table(Path(participants_table(recipe, 1, 0)), ["round", "client"]).to_pylist()
    return [row["client"] for row in rows if not still_there(recipe, row, step)]


def width_of_mean(recipe, samples):
    """The largest error of a mean of quantised changes, as wide as a step of each participant."""
    secure = recipe.aggregation.secure
    step = 2 * secure.clip / (2**secure.bits - 1)
    uniform = recipe.aggregation.weights == "uniform"
    return step if uniform else step * recipe.participants * secure.most_samples / samples


@pytest.mark.parametrize("weights", ["samples", "uniform"])
@pytest.mark.parametrize("bits", [24, 8])
def test_weights_are_those_of_a_plain_run_up_to_rounding(here, weights, bits):
    recipe = of(SECURE | {"bits": bits}, aggregation={"weights": weights})
    plain, expected = made(of(None, aggregation={"weights": weights}))
    found, metadata = made(recipe)
    assert metadata == expected
    most = width_of_mean(recipe, metadata["samples"])
    differences = [float((found[name] - plain[name]).abs().max()) for name in plain]
    assert max(differences) <= most + 1e-7  # which fp32 adds
    assert bits > 8 or max(differences) > 1e-4


def test_recipes_of_a_seed_share_no_secrets(here):
    """Else masked vectors of two runs would differ by what they hide."""
    recipes = of(), of(local={"fedprox": {"mu": 0.1}})
    for recipe in recipes:
        made(recipe)
    for stage, output in ((advertise, "private"), (share, "shares")):
        first, second = (load_tensors(stage(one, 1, 0, 0, output=output))[0] for one in recipes)
        assert first
        assert first.keys() == second.keys()
        assert not any(torch.equal(first[name], second[name]) for name in first)


def test_a_participant_that_drops_out_late_counts_and_one_that_drops_out_early_does_not(here):
    """The sum is that of the others' updates, recomputed from their files."""
    for step in STEPS:
        recipe = of(dropping(step))
        model, metadata = made(recipe)
        missing = gone(recipe, step)
        assert len(missing) == 1
        table = load_table(Path(participants_table(recipe, 1, 0))).to_pylist()
        assert [row["client"] for row in table if row["dropped"]] == (
            [] if step == "unmask" else missing
        )
        counted = [load_tensors(file) for file in updates(recipe, 1, 0)]
        counted = [one for one in counted if step == "unmask" or one[1]["client"] not in missing]
        samples = sum(update["samples"] for _, update in counted)
        assert metadata["samples"] == samples
        for name, value in model.items():
            parts = (w[f"model/{name}"].double() * m["samples"] / samples for w, m in counted)
            assert torch.allclose(value.double(), sum(parts), atol=1e-5)


def test_no_job_of_the_server_reads_what_tells_of_one_client():
    recipe = of()
    jobs = behind([global_model(recipe, 2, 0)])
    seen = [
        file
        for job in jobs
        if job.stage.private is None
        for files in job.inputs.values()
        for file in listed(files)
        if isinstance(file, File)
    ]
    of_clients = {file.job.stage for file in seen if file.job.stage.private is not None}
    assert of_clients == {advertise, masked_input, unmask}
    assert {file.output for file in seen if file.job.stage is advertise} == {"public"}
    assert not [file for file in seen if file.job.stage.private]


def test_the_server_does_not_learn_samples_and_losses(here):
    recipe = of()
    made(recipe)
    table = load_table(Path(aggregation(recipe, 1, 0, output="participants"))).to_pydict()
    for column in ("samples", "steps", "loss", "distance"):
        assert set(table[column]) == {None}
    keys, shares, vector, revealed = 64, 4 * 82, 4 * 651, 4 * 33
    assert table["bytes_up"] == [keys + shares + vector + revealed] * 4
    assert table["bytes_down"] == [4 * 650 + 4 * keys + 4 * 82 + 4 * 4] * 4


def test_a_sample_is_in_a_plain_update_and_not_in_a_masked_one(here):
    """The change of a linear model after a step on one sample is a multiple of this sample.

    Row c of the change of the weights is (p_c - y_c) x, and of the biases p_c - y_c (Phong et al.
    2018), so that their quotient is x.
    """
    recipe = of(client={"steps": 1, "batch_size": 1, "learning_rate": 0.05})
    made(recipe)
    update, place = load_tensors(updates(recipe, 1, 0)[0])
    start, _ = load_tensors(global_model(recipe, 0, 0))
    weights, biases = (name for name in sorted(start, key=lambda name: -start[name].dim()))
    change = {name: (update[f"model/{name}"] - start[name]).double().numpy() for name in start}
    pixels = change[weights] / change[biases][:, None]
    assert np.abs(pixels - pixels.mean(0)).max() < 1e-2 * np.abs(pixels).max()  # all rows agree

    vector, _ = load_tensors(masked_input(recipe, 1, 0, place["participant"]))
    numbers = vector["vector"].numpy()[:-1].astype(np.float64) / 2**24 - 0.5
    flat = dict(
        zip(sorted(start), np.split(numbers, [start[sorted(start)[0]].numel()]), strict=True)
    )
    guessed = flat[weights].reshape(start[weights].shape) / flat[biases][:, None]
    correlation = np.corrcoef(guessed)[~np.eye(len(guessed), dtype=bool)]
    assert np.abs(correlation).max() < 0.6  # of rows that would all be the sample


SCAFFOLD = {"local": "scaffold", "client": BASE["client"] | {"epochs": 2}}
WIDE = SECURE | {"payload_clip": 3.0}


def variates(recipe, round_, by="server"):
    """The control variates after a round, by client or of the server, in one vector each."""
    stage = client_state if by == "client" and recipe.aggregation.secure else aggregation
    output = "output" if stage is client_state else "new_state"
    file = stage(recipe, round_, 0, output=output)
    make_all(file)
    found = {}
    for name, value in sorted(load_tensors(file)[0].items()):
        if name.startswith(f"{by}/"):
            owner = name.split("/")[1] if by == "client" else by
            found.setdefault(owner, []).append(value.double().flatten())
    return {owner: torch.cat(parts) for owner, parts in found.items()}


@pytest.mark.parametrize("weights", ["samples", "uniform"])
def test_scaffold_is_that_of_a_plain_run_up_to_rounding(here, weights):
    recipe = of(WIDE, aggregation={"weights": weights}, **SCAFFOLD)
    plain = of(None, aggregation={"weights": weights}, **SCAFFOLD)
    expected, samples = made(plain)
    found, _ = made(recipe)
    most = width_of_mean(recipe, samples["samples"])
    assert max(float((found[n] - expected[n]).abs().max()) for n in expected) <= most + 1e-7
    step = 2 * 3.0 / (2**24 - 1)
    moved = variates(recipe, 1)["server"] - variates(plain, 1)["server"]
    assert 0 < moved.abs().max() <= step * recipe.participants / recipe.clients + 1e-7
    assert variates(plain, 1)["server"].abs().max() > 0.1
    for client, variate in variates(plain, 1, "client").items():
        assert torch.equal(variates(recipe, 1, "client")[client], variate)
    later = made(recipe, rounds=3)[0], made(plain, rounds=3)[0]
    assert max(float((later[0][n] - later[1][n]).abs().max()) for n in expected) < 1e-4


def test_no_control_variate_of_a_client_is_in_a_file_of_the_server(here):
    recipe = of(WIDE, **SCAFFOLD)
    made(recipe, rounds=2)
    state, _ = load_tensors(aggregation(recipe, 1, 0, output="new_state"))
    assert state
    assert all(name.startswith("server/") for name in state)
    for job in behind([global_model(recipe, 2, 0)]):
        if job.stage.private is None:
            read = (file for files in job.inputs.values() for file in listed(files))
            assert not [f for f in read if isinstance(f, File) and f.job.stage.private]
