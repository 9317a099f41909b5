"""The same bytes, however the work is done."""

import os
import signal
import time

import pytest

from fedstage.training.devices import computes_bf16

pytestmark = pytest.mark.workflow


def test_one_core_and_two_cores_give_the_same_bytes(finished, project):
    project.make(cores=1)
    assert project.results() == finished.results()


def test_other_numerics_give_their_own_bytes_in_any_order_and_company(project, new_project):
    precision = "bf16" if computes_bf16() else "fp32"
    chosen = {
        "methods": ["fedsdd"],
        "model": {"cnn_small": {"width": 2, "hidden": 4, "norm": "batch"}},
        "numerics": {"device": "cpu", "precision": precision, "memory_format": "channels_last"},
    }
    project.configure(**chosen).make()
    beside = new_project()
    beside.configure(**chosen, execution={"granularity": "round"}).make(cores=1)
    assert beside.results() == project.results()
    plain = new_project().configure(**chosen | {"numerics": {"device": "cpu"}})
    plain.make()
    trained = "results/training/*/round_*/*/aggregated.safetensors"
    assert plain.files(trained)
    assert not set(plain.files(trained)) & set(project.files(trained))


def test_a_killed_run_goes_on_to_the_same_bytes(finished, project):
    """SIGKILL hits snakemake only: its jobs go on, and it leaves its lock behind."""
    running = project.start()
    wait_for(lambda: len(project.files("results/training/*/round_*/group_*/participant_*")) >= 2)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    assert not project.files("results/tables/tiny/default.md")
    refused = project.call(short=True)
    assert refused.code == 1
    assert "removed with the --unlock argument" in " ".join(refused.output.split())
    assert project.call("--unlock").code == 0
    project.make()  # files that its jobs had not finished are made again
    assert project.results() == finished.results()


def wait_for(condition, seconds=1800):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.05)
