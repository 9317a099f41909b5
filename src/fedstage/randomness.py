"""Generators keyed by what they are for.

A key such as ``(seed, "local_training", round, client, "batches")`` always gives the same stream,
whatever ran before or concurrently, on any number of cores; methods that share a seed therefore
share partition, participation, initial weights and batch order. Dropout, and code of users, draw
from global generators, which are seeded for each job and each client.
"""

import hashlib
import json
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # stages that draw with NumPy do not wait for torch, nor plans for NumPy
    import numpy as np
    import torch

Key = int | str


def _digest(key: tuple[Key, ...]) -> int:
    text = json.dumps(key, separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def secret(*key: Key) -> bytes:
    """Return 32 bytes for a client's cryptographic keys: secret as long as the seed is.

    A simulation must make the same bytes again. Elsewhere such bytes come from the system.
    """
    return hashlib.sha256(json.dumps(["secret", *key], separators=(",", ":")).encode()).digest()


def fraction(*key: Key) -> float:
    """Return a number in [0, 1) that only depends on the key: for the plan of a run."""
    return (_digest(key) >> 11) / 2**53


def numpy_generator(*key: Key) -> "np.random.Generator":
    """Return the NumPy generator of a key: for partitions and participation."""
    import numpy as np

    return np.random.Generator(np.random.Philox(key=_digest(key)))


def torch_generator(*key: Key) -> "torch.Generator":
    """Return the CPU torch generator of a key: for weights, batches and augmentation."""
    import torch

    return torch.Generator().manual_seed(_digest(key) >> 1)


def seed_globals(*key: Key, gpu: bool = True) -> None:
    """Seed the global generators of Python, NumPy and torch, as far as they are imported."""
    seed = _digest(key)
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed % 2**32)
    if torch := sys.modules.get("torch"):
        torch.default_generator.manual_seed(seed >> 1)  # a hundred times as fast as torch's own
        if gpu:
            torch.cuda.manual_seed_all(seed >> 1)


@contextmanager
def drawing_from(*key: Key) -> Iterator[None]:
    """Seed the global generators of the CPU, and reset them afterwards.

    This is for code that draws from them: constructors of layers, and users' models.
    """
    import numpy as np
    import torch

    before = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[]):
        seed_globals(*key, gpu=False)  # a job's own seed would be lost
        try:
            yield
        finally:
            random.setstate(before[0])
            np.random.set_state(before[1])  # noqa: NPY002
