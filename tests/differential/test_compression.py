"""Compressed changes against a plain sort, and their bytes against an encoder and its decoder."""

import numpy as np
import pytest
import torch

from fedstage.algorithm.exchange.compression import compress, kept_entries, sent_bytes, transmit
from fedstage.randomness import torch_generator
from fedstage.settings.local_training import Stc


def stc(**changes):
    return Stc.model_validate({"name": "stc", **changes})


def noise(*shape, key=0, scale=0.01):
    return scale * torch.randn(shape, generator=torch_generator(0, key))


def plainly(values, kept, bits):
    """Zero all but the `kept` largest, ties from the first on, and round them."""
    order = sorted(range(len(values)), key=lambda place: (-abs(values[place]), place))
    sent = np.zeros_like(values)
    for place in order[:kept]:
        sent[place] = values[place] if bits == 32 else np.float32(np.float16(values[place]))
    return sent


# --- what is sent ---------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("sparsity", [0.0, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("shape", [(1,), (7,), (3, 4), (5, 2, 3, 3)])
def test_the_largest_entries_are_sent(shape, sparsity, bits):
    change = noise(*shape)
    kept = max(1, round((1 - sparsity) * change.numel()))
    found = compress(stc(sparsity=sparsity, bits=bits), change)
    assert found.shape == change.shape
    assert int(found.count_nonzero()) == kept
    assert np.array_equal(found.flatten().numpy(), plainly(change.flatten().numpy(), kept, bits))


def test_of_equal_entries_the_first_are_sent():
    change = torch.tensor([0.5, -1.0, 1.0, -1.0, 1.0, 0.25])
    found = compress(stc(bits=32), change)
    assert found.tolist() == [0.0, -1.0, 1.0, -1.0, 0.0, 0.0]
    assert torch.equal(compress(stc(), torch.zeros(4)), torch.zeros(4))


def test_a_number_beyond_16_bits_is_the_largest_that_they_hold():
    change = torch.tensor([1e6, -1e6, 2.0, 1.0])
    assert compress(stc(), change).tolist() == [65504.0, -65504.0, 0.0, 0.0]
    assert compress(stc(bits=32), change).tolist() == [1e6, -1e6, 0.0, 0.0]


def test_tensors_are_compressed_one_by_one():
    start = {"large": torch.zeros(4), "small": torch.zeros(4)}
    end = {"large": noise(4, key=1, scale=1.0), "small": noise(4, key=2, scale=1e-4)}
    received, _ = transmit(stc(), start, end, {})
    assert [int(value.count_nonzero()) for value in received.values()] == [2, 2]


# --- what is kept ---------------------------------------------------------------------------------


def test_what_is_sent_and_what_is_left_are_the_change_and_the_residual_before():
    start, residual = {"w": torch.zeros(200)}, {}
    for round_ in range(20):
        end = {"w": noise(200, key=round_)}
        due = end["w"] + residual["w"] if residual else end["w"]
        received, residual = transmit(stc(sparsity=0.9), start, end, residual)
        assert torch.equal(received["w"] + residual["w"], due)
        assert int((received["w"] != 0).sum()) == 20


def test_with_residuals_everything_arrives():
    steady = torch.tensor([1.0, 0.9, 0.2, -0.1])
    model, residual = {"w": torch.zeros(4)}, {}
    for _ in range(100):
        model, residual = transmit(stc(sparsity=0.75), model, {"w": model["w"] + steady}, residual)
    # What is still on its way is bounded: a few rounds' worth of the largest.
    assert torch.allclose(model["w"] / 100, steady, atol=0.05)


def test_nothing_left_out_is_the_model_itself():
    start, end = {"w": noise(50, key=1, scale=1.0)}, {"w": noise(50, key=2, scale=1.0)}
    received, left = transmit(stc(sparsity=0.0, bits=32), start, end, {})
    assert torch.allclose(received["w"], end["w"], atol=1e-6)
    assert int(left["w"].count_nonzero()) == 0


# --- bytes ----------------------------------------------------------------------------------------


def encode(values, kept, bits):
    """Write a sparse tensor: its places, as a mask or as indices, and then its numbers."""
    places = np.flatnonzero(values)
    width = max(1, (len(values) - 1).bit_length())
    if kept == len(values):
        written = ""
    elif len(values) <= kept * width:
        written = "".join("1" if value else "0" for value in values)
    else:
        written = "".join(f"{place:0{width}b}" for place in places)
    kind, unsigned = {16: ("<f2", "<u2"), 32: ("<f4", "<u4")}[bits]
    numbers = values[places].astype(kind).view(unsigned)
    text = written + "".join(f"{number:0{bits}b}" for number in numbers)
    text += "0" * (-len(text) % 8)
    return bytes(int(text[i : i + 8], 2) for i in range(0, len(text), 8))


def decode(data, entries, kept, bits):
    text = "".join(f"{byte:08b}" for byte in data)
    width = max(1, (entries - 1).bit_length())
    if kept == entries:
        places, used = range(entries), 0
    elif entries <= kept * width:
        places, used = [i for i in range(entries) if text[i] == "1"], entries
    else:
        places = [int(text[i * width : (i + 1) * width], 2) for i in range(kept)]
        used = kept * width
    kind, unsigned = {16: ("<f2", "<u2"), 32: ("<f4", "<u4")}[bits]
    numbers = [int(text[used + i * bits : used + (i + 1) * bits], 2) for i in range(kept)]
    values = np.zeros(entries, np.float32)
    values[list(places)] = np.array(numbers, unsigned).view(kind)
    return values


@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("sparsity", [0.0, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("entries", [2, 9, 100, 1000])
def test_a_change_fits_into_the_bytes_that_are_counted(entries, sparsity, bits):
    settings = stc(sparsity=sparsity, bits=bits)
    sent, kept = compress(settings, noise(entries)), kept_entries(settings, entries)
    data = encode(sent.numpy(), kept, bits)
    assert np.array_equal(decode(data, entries, kept, bits), sent.numpy())
    assert sent_bytes(settings, {"w": sent}) == len(data)


def test_half_of_the_entries_in_16_bits_are_a_little_more_than_a_quarter():
    model = {"a": torch.zeros(1000, 8), "b": torch.zeros(80)}
    dense = 8080 * 4
    assert sent_bytes(stc(), model) == dense * 9 // 32  # 8 bits an entry and 1 of the mask


def test_few_entries_are_sent_with_their_indices():
    assert sent_bytes(stc(sparsity=0.99), {"w": torch.zeros(1000)}) == -(-10 * (16 + 10) // 8)
