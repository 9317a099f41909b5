import pytest
import torch

from fedstage.algorithm.exchange.round_state import (
    next_residuals,
    next_statistics,
    optimiser_state,
    own_statistics,
    read_state,
    residual_of,
    rounds_since,
    server_memory,
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


def test_without_files_there_is_no_state():
    assert read_state([], 0) == {}


def test_one_file_is_read_bit_for_bit(written):
    path = written(1, server__w=tensor(0.1, 0.2), client__7__w=tensor(1e-30, 3.0))
    assert as_numbers(read_state([path], 1)) == {
        "client/7/w": tensor(1e-30, 3.0).tolist(), "server/w": tensor(0.1, 0.2).tolist(),
    }  # fmt: skip


@pytest.mark.parametrize("turned", [False, True])
def test_variates_of_all_groups_are_added_up(written, turned):
    paths = [
        written(0, server__w=tensor(1.0), client__1__w=tensor(4.0), client__2__w=tensor(3.0)),
        written(1, server__w=tensor(10.0), client__1__w=tensor(-1.5)),
        written(2, client__3__w=tensor(7.0)),
    ]
    expected = {"client/1/w": [2.5], "client/2/w": [3.0], "client/3/w": [7.0], "server/w": [11.0]}
    assert as_numbers(read_state(paths[::-1] if turned else paths, 1)) == expected


def test_sums_are_taken_in_double_precision(written):
    parts = [written(k, server__w=tensor(value)) for k, value in enumerate((1e8, 1.0, -1e8))]
    (total,) = read_state(parts, 0).values()
    assert (float(total), total.dtype) == (1.0, torch.float32)


def test_statistics_are_those_of_the_own_group(written):
    paths = [
        written(group, server__w=tensor(1.0), statistics__1__norm=tensor(float(group)))
        for group in (0, 1)
    ]
    assert as_numbers(read_state(paths, 1)) == {"server/w": [2.0], "statistics/1/norm": [1.0]}


def test_only_variates_are_added_up(written):
    paths = [
        written(
            group, server__w=tensor(1.0), residual__1__w=tensor(2.0 + group),
            residual__server__w=tensor(5.0), optimizer__t=tensor(3.0), received__1=tensor(4.0),
        )
        for group in (0, 1)
    ]  # fmt: skip
    state = read_state(paths, 1)
    assert as_numbers(variates(state)) == {"server/w": [2.0]}
    assert as_numbers(residual_of(state, 1)) == {"w": [3.0]}
    assert as_numbers(residual_of(state, "server")) == {"w": [5.0]}
    assert as_numbers(optimiser_state(state)) == {"t": [3.0]}
    assert residual_of(state, 11) == {}


def test_rounds_since_a_client_took_part():
    state = {"received/1": torch.tensor(3), "received/11": torch.tensor(5)}
    assert [rounds_since(state, client, 7) for client in (1, 11, 2)] == [4, 2, None]


def test_residuals_of_clients_are_none_of_the_servers():
    state = {
        "residual/1/w": tensor(1.0), "residual/2/w": tensor(2.0), "residual/server/w": tensor(3.0),
        "optimizer/b/w": tensor(4.0), "received/1": tensor(5.0), "server/w": tensor(6.0),
    }  # fmt: skip
    update = Update(None, {}, {}, {"client": 2}, {"w": tensor(9.0)})
    assert as_numbers(next_residuals(state, [update])) == {
        "residual/1/w": [1.0], "residual/2/w": [9.0],
    }  # fmt: skip
    assert as_numbers(server_memory(state)) == {"residual/server/w": [3.0], "optimizer/b/w": [4.0]}


def test_a_clients_statistics_are_told_apart_from_those_of_others_and_from_variates():
    state = {
        "statistics/1/norm.mean": tensor(1.0),
        "statistics/11/norm.mean": tensor(11.0),
        "client/1/norm.weight": tensor(5.0),
    }
    assert as_numbers(own_statistics(state, 1)) == {"norm.mean": [1.0]}
    assert own_statistics(state, 2) == {}


def test_participants_replace_their_statistics_and_others_keep_theirs(tmp_path):
    state = {
        "statistics/1/norm": tensor(1.0), "statistics/2/norm": tensor(2.0), "server/w": tensor(9.0),
    }  # fmt: skip
    updates = [
        Update(tmp_path, {"w": tensor(0.0), "norm": tensor(10.0 * client)}, {}, {"client": client})
        for client in (2, 3)
    ]
    after = next_statistics(state, updates, parameters={"w": tensor(0.0)})
    assert as_numbers(after) == {
        "statistics/1/norm": [1.0], "statistics/2/norm": [20.0], "statistics/3/norm": [30.0],
    }  # fmt: skip
    assert float(state["statistics/2/norm"]) == 2.0, "the old state is left alone"
