"""Compiled losses: the same bytes cold and warm, once compiled for all models of a kind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fedstage.training.devices import has_compiler

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not has_compiler(), reason="needs a C++ compiler"),
]

SCRIPT = Path(__file__).with_name("compiled_training.py")


def run(folder, *choices):
    """Train in a process of its own, whose compiled code is kept in a folder."""
    environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *choices], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture(scope="module")
def cold(folder):
    return run(folder, "fp32", "bf16")


def test_code_from_the_folder_gives_the_bytes_of_new_code(cold, folder):
    """In another order, too, so that what a worker did before makes no difference."""
    warm = run(folder, "bf16", "fp32")
    assert (cold["loaded"], warm["loaded"]) == (0, cold["compiled"])
    for part in ("fp32", "bf16", "changes"):
        assert warm[part] == cold[part]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_compiled_code_is_used_again_by_other_models_and_trainings(cold, precision):
    first, again = cold[precision]["first"], cold[precision]["again"]
    assert again["digest"] == first["digest"]
    assert (first["graphs"], again["graphs"]) == (1, 0)


@pytest.mark.parametrize(("precision", "far"), [("fp32", 1e-4), ("bf16", 0.1)])
def test_compiled_training_is_the_eager_one_within_a_tolerance(cold, precision, far):
    assert cold[precision]["first"]["distance"] < far


def test_only_full_batches_are_compiled(cold):
    """Of three batches of an epoch the last is smaller: no second graph, and the eager bytes."""
    assert cold["fp32"]["smaller"] == {"graphs": 0, "equal": True}
