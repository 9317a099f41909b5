"""Trainings that take turns: which steps when, and on which stream."""

from contextlib import contextmanager

import pytest
import torch

from fedstage.training import batches
from fedstage.training.batches import finish, take_turns

CPU = torch.device("cpu")


@pytest.fixture
def current(monkeypatch):
    """Streams that only say which is entered."""
    entered = []

    @contextmanager
    def enter(number):
        entered.append(number)
        yield
        entered.pop()

    @contextmanager
    def of(device, count):
        yield [lambda number=number: enter(number) for number in range(count)]

    monkeypatch.setattr(batches, "streams", of)
    return entered


def work(name, steps, told, current=()):
    told.append((name, 0, *current))
    for step in range(1, steps + 1):
        yield
        told.append((name, step, *current))


def turns(lengths, at_a_time, current=()):
    told = []
    works = (work(name, steps, told, current) for name, steps in lengths.items())
    take_turns(works, at_a_time, CPU)
    return told


def test_two_take_turns_and_the_next_starts_where_one_has_ended():
    assert turns({"a": 1, "b": 3, "c": 1}, 2) == [
        ("a", 0), ("b", 0), ("a", 1), ("b", 1), ("c", 0), ("b", 2), ("c", 1), ("b", 3),
    ]  # fmt: skip


def test_two_that_train_at_the_same_time_share_no_stream(current):
    told = turns({"a": 2, "b": 5, "c": 1, "d": 3}, 2, current)
    spans = {}
    for when, (name, _, stream) in enumerate(told):
        first, _, _ = spans.get(name, (when, when, stream))
        spans[name] = first, when, stream
    for a, (begin, end, stream) in spans.items():
        for b, (other_begin, other_end, other) in spans.items():
            if a < b and stream == other:
                assert end < other_begin or other_end < begin


def test_errors_come_through():
    def failing():
        yield
        raise ValueError("of this one")

    with pytest.raises(ValueError, match="of this one"):
        take_turns([failing(), failing()], 2, CPU)
    with pytest.raises(ValueError, match="of this one"):
        finish(failing(), CPU)


class Stream:
    """A stream of a GPU that writes down what it waits for."""

    def __init__(self, name, told):
        self.name, self.told = name, told

    def wait_stream(self, other):
        self.told.append((self.name, other.name))


def test_streams_of_a_gpu_begin_after_and_end_before_the_current_one(monkeypatch):
    told = []
    made = [Stream(number, told) for number in range(2)]
    monkeypatch.setattr(batches, "_stream", lambda device, number: made[number])
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream("current", told))

    @contextmanager
    def entered(stream):
        told.append(f"into {stream.name}")
        yield

    monkeypatch.setattr(torch.cuda, "stream", entered)
    take_turns([iter([None])] * 2, 2, torch.device("cuda"))
    assert told[:4] == [(0, "current"), (1, "current"), "into 0", "into 1"]
    assert told[-2:] == [("current", 0), ("current", 1)]
    assert set(told[2:-2]) == {"into 0", "into 1"}
