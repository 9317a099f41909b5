"""Server optimisers against the published updates, written out number by number."""

import math

import pytest
import torch
from pydantic import TypeAdapter

from fedstage.algorithm.aggregation.server_optimizers import server_step
from fedstage.settings.aggregation import ServerOptimiser
from fedstage.storage.tensors import load_tensors, save_tensors

SHAPES = {"conv.weight": (3, 2), "bias": (4,), "scale": ()}
ROUNDS = 120
VARIANTS = (
    {},
    {"beta2": 0.999, "epsilon": 1e-8},
    {"beta1": 0.0, "learning_rate": 1.0},
    {"beta1": 0.5, "beta2": 0.0},
    {"v_start": "epsilon_squared", "epsilon": 0.05},
)


def chosen(name, **settings):
    return TypeAdapter(ServerOptimiser).validate_python({"name": name, **settings})


def tensors(seed, scale=1.0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return {
        name: scale * torch.randn(shape, generator=generator, dtype=dtype)
        for name, shape in SHAPES.items()
    }


def changes(rounds=ROUNDS, dtype=torch.float64):
    """Changes that shrink, as those of a training do, and now and then burst."""
    return [
        tensors(t + 1, 0.1 * 0.97**t * (20 if t % 31 == 30 else 1), dtype) for t in range(rounds)
    ]


def run(settings, deltas, start):
    """The weights after each round, and the last state."""
    path, weights, state = [], start, {}
    for delta in deltas:
        weights, state = server_step(settings, weights, delta, state)
        path.append(weights)
    return path, state


def numbers(path, name, place):
    return [float(weights[name].flatten()[place]) for weights in path]


def plain_adaptive(kind, x, deltas, eta, beta1, beta2, epsilon, v):
    """One number's way through the rounds."""
    m, way = 0.0, []
    for delta in deltas:
        square = delta * delta
        m = beta1 * m + (1 - beta1) * delta
        if kind == "adam":
            v = beta2 * v + (1 - beta2) * square
        elif v > square:
            v = v - (1 - beta2) * square
        elif v < square:
            v = v + (1 - beta2) * square
        x += eta * m / (math.sqrt(v) + epsilon)
        way.append(x)
    return way


def expected(kind, x, deltas, settings):
    written = {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.99, "epsilon": 0.001} | settings
    return plain_adaptive(
        kind, x, deltas, written["learning_rate"], written["beta1"], written["beta2"],
        written["epsilon"],
        written["epsilon"] ** 2 if settings.get("v_start") == "epsilon_squared" else 0.0,
    )  # fmt: skip


@pytest.mark.parametrize("settings", VARIANTS, ids=str)
@pytest.mark.parametrize("kind", ["adam", "yogi"])
def test_adaptive_steps_are_the_published_ones_round_for_round(kind, settings):
    start, deltas = tensors(0), changes()
    path, state = run(chosen(kind, **settings), deltas, start)
    assert int(state["t"]) == ROUNDS
    for name, value in start.items():
        for place in range(value.numel()):
            way = expected(
                kind, float(value.flatten()[place]), numbers(deltas, name, place), settings
            )
            assert numbers(path, name, place) == pytest.approx(way, rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("kind", ["adam", "yogi"])
def test_single_precision_follows_double_precision(kind):
    single = {name: value.float() for name, value in tensors(0).items()}
    path, state = run(chosen(kind), changes(dtype=torch.float32), single)
    assert {value.dtype for value in path[-1].values()} == {torch.float32}
    assert {value.dtype for name, value in state.items() if name != "t"} == {torch.float32}
    double = {name: value.double() for name, value in single.items()}
    deltas = [
        {name: value.double() for name, value in delta.items()}
        for delta in changes(dtype=torch.float32)
    ]
    way, _ = run(chosen(kind), deltas, double)
    for name, value in way[-1].items():
        assert torch.allclose(path[-1][name].double(), value, rtol=1e-5, atol=1e-5)


def plain_momentum(x, deltas, eta, beta):
    b, way = 0.0, []
    for delta in deltas:
        b = beta * b + delta
        x += eta * b
        way.append(x)
    return way


@pytest.mark.parametrize(("eta", "beta"), [(1.0, 0.9), (0.3, 0.5), (1.0, 0.0)])
def test_momentum_is_the_published_one_round_for_round(eta, beta):
    start, deltas = tensors(0), changes(40)
    settings = chosen("momentum", learning_rate=eta, beta=beta)
    path, _ = run(settings, deltas, start)
    for name, value in start.items():
        for place in range(value.numel()):
            begun = float(value.flatten()[place])
            way = plain_momentum(begun, numbers(deltas, name, place), eta, beta)
            assert numbers(path, name, place) == pytest.approx(way, rel=1e-12, abs=1e-13)


def test_average_takes_the_mean_itself_and_remembers_nothing():
    start, (delta,) = tensors(0), changes(1)
    weights, state = server_step(chosen("average"), start, delta, {})
    assert state == {}
    assert all(torch.equal(weights[name], start[name] + delta[name]) for name in start)


@pytest.mark.parametrize("kind", ["adam", "yogi", "momentum"])
def test_what_nobody_moves_stays(kind):
    still = {name: torch.zeros_like(value) for name, value in tensors(0).items()}
    path, _ = run(chosen(kind), [still] * 3, tensors(0))
    assert all(torch.equal(path[-1][name], value) for name, value in tensors(0).items())


# --- as functions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["average", "momentum", "adam", "yogi"])
def test_a_step_changes_nothing_that_it_is_given(kind):
    start, (first, second) = tensors(0), changes(2)
    _, state = server_step(chosen(kind), start, first, {})
    given = [start, second, state]
    copies = [{name: value.clone() for name, value in part.items()} for part in given]
    server_step(chosen(kind), start, second, state)
    for part, copy in zip(given, copies, strict=True):
        assert part.keys() == copy.keys()
        assert all(torch.equal(part[name], copy[name]) for name in part)


@pytest.mark.parametrize("kind", ["momentum", "adam", "yogi"])
def test_a_run_goes_on_from_a_file_as_if_it_had_not_stopped(kind, tmp_path):
    deltas = changes(6, torch.float32)
    start = {name: value.float() for name, value in tensors(0).items()}
    straight, _ = run(chosen(kind), deltas, start)
    path, state = run(chosen(kind), deltas[:3], start)
    save_tensors(tmp_path / "state.safetensors", state)
    weights, state = path[-1], load_tensors(tmp_path / "state.safetensors")[0]
    for delta in deltas[3:]:
        weights, state = server_step(chosen(kind), weights, delta, state)
    assert all(torch.equal(weights[name], straight[-1][name]) for name in SHAPES)
