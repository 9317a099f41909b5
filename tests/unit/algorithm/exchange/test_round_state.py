import pytest
import torch

from fedstage.algorithm.exchange.round_state import (
    next_parts,
    optimiser_state,
    own_parts,
    read_state,
    residual_of,
    variates,
)
from fedstage.algorithm.exchange.updates import Update
from fedstage.storage.tensors import save_tensors


def tensor(*values):
    return torch.tensor(values, dtype=torch.float32)


@pytest.fixture
def written(tmp_path):
    def write(group, **tensors):
        path = tmp_path / f"group_{group}.safetensors"
        named = {name.replace("__", "/"): value for name, value in tensors.items()}
        save_tensors(path, named, {"round": 3, "group": group, "samples": 5})
        return path

    return write


def as_numbers(state):
    return {name: value.tolist() for name, value in state.items()}


def test_parts_of_a_state_are_told_apart(written):
    parts = {"residual__1__w": tensor(3.0), "residual__server__w": tensor(5.0)}
    path = written(1, server__w=tensor(2.0), optimizer__t=tensor(3.0), **parts)
    state = read_state([path])
    assert as_numbers(variates(state)) == {"server/w": [2.0]}
    assert as_numbers(residual_of(state, 1)) == {"w": [3.0]}
    assert as_numbers(residual_of(state, "server")) == {"w": [5.0]}
    assert as_numbers(optimiser_state(state)) == {"t": [3.0]}
    assert residual_of(state, 11) == {}


def test_a_clients_statistics_are_told_apart_from_those_of_others_and_from_variates():
    state = {
        "personal/1/norm.mean": tensor(1.0),
        "personal/11/norm.mean": tensor(11.0),
        "client/1/norm.weight": tensor(5.0),
    }
    assert as_numbers(own_parts(state, 1)) == {"norm.mean": [1.0]}
    assert own_parts(state, 2) == {}


def test_participants_replace_their_statistics_and_others_keep_theirs(tmp_path):
    state = {
        "personal/1/norm": tensor(1.0), "personal/2/norm": tensor(2.0), "server/w": tensor(9.0),
    }  # fmt: skip
    updates = [
        Update(tmp_path, {"w": tensor(0.0), "norm": tensor(10.0 * client)}, {}, {"client": client})
        for client in (2, 3)
    ]
    after = next_parts(state, updates, ["norm"])
    assert as_numbers(after) == {
        "personal/1/norm": [1.0], "personal/2/norm": [20.0], "personal/3/norm": [30.0],
    }  # fmt: skip
    assert float(state["personal/2/norm"]) == 2.0, "the old state is left alone"
