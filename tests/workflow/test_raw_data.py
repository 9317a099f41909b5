"""Raw data is part of the graph: other content is another result, the same elsewhere is not."""

import contextlib
import re
import shutil
from io import BytesIO, StringIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from fedstage.execution.cli import main
from fedstage.randomness import numpy_generator

pytestmark = pytest.mark.workflow

DATA = {"parquet": {"folder": "mine"}}
METRICS = "results/training/*/metrics/*/*.parquet"
NOTHING = "Nothing to be done"


def write_part(path, size, flipped=False):
    """Write images of two classes, the light and the dark, as PNG in Parquet."""
    draws = numpy_generator(0, "dataset", path.stem)
    labels = np.arange(size) % 2
    rows = []
    for label in labels.tolist():
        pixels = draws.integers(100, 120, (6, 6, 3)) + 100 * label
        file = BytesIO()
        Image.fromarray(pixels.astype(np.uint8)).save(file, "png")
        rows.append({"bytes": file.getvalue(), "path": None})
    shown = 1 - labels if flipped else labels
    pq.write_table(pa.table({"img": rows, "label": pa.array(shown)}), path)


@pytest.fixture(scope="module")
def once(new_project, tmp_path_factory):
    """A finished run on images of one's own, in a folder `data` beside the results."""
    project = new_project().configure(
        data=DATA, clients=2, participants=2, rounds=1, validation=0.0, methods=["fedavg"]
    )
    folder = project.path / "data" / "mine"
    folder.mkdir(parents=True)
    write_part(folder / "train.parquet", 60)
    write_part(folder / "test.parquet", 20)
    project.make(FEDSTAGE_DATA="data")
    return project


@pytest.fixture
def mine(once, tmp_path):
    """A copy of the finished run, its raw data included."""
    shutil.copytree(once.path, tmp_path / "copy", symlinks=True)
    return type(once)(tmp_path / "copy")


def plan(project, folder="data", *arguments):
    return project.make("--dry-run", *arguments, FEDSTAGE_DATA=folder)


def accuracy(project):
    (metrics,) = project.files(METRICS)
    return pq.read_table(project.path / metrics).to_pylist()[-1]


def why(project, file):
    with contextlib.chdir(project.path), contextlib.redirect_stdout(StringIO()) as printed:
        assert main(["why", str(file)]) == 0
    return printed.getvalue()


def test_flipped_labels_are_another_result(mine):
    before = accuracy(mine)
    (train,) = mine.files("results/data/*/train.safetensors")
    assert "was" not in why(mine, train)
    write_part(mine.path / "data/mine/train.parquet", 60, flipped=True)
    (model,) = mine.files("results/training/*/round_0001/group_0/aggregated.safetensors")
    plan(mine)
    assert ", was " in why(mine, model)
    said = why(mine, train).splitlines()
    assert any(line.endswith("mine/train.parquet") and ", was " in line for line in said)
    assert any(line.endswith("mine/test.parquet") and ", unchanged" in line for line in said)
    run = mine.make(FEDSTAGE_DATA="data")
    assert run.jobs["dataset"] == run.jobs["partition"] == run.jobs["evaluation"] == 1
    assert run.jobs["local_training"] == 2
    assert accuracy(mine) != before
    assert ", was " not in why(mine, train)
    assert NOTHING in plan(mine).output


def test_another_data_folder_counts_by_its_content(mine):
    shutil.copytree(mine.path / "data", mine.path / "elsewhere", copy_function=shutil.copyfile)
    assert NOTHING in plan(mine, "elsewhere").output
    write_part(mine.path / "elsewhere/mine/test.parquet", 20, flipped=True)
    changed = plan(mine, "elsewhere")
    assert changed.jobs["dataset"] == 1
    (train,) = mine.files("results/data/*/train.safetensors")
    assert ", was " in why(mine, train)
    assert NOTHING in plan(mine).output
    assert ", was " not in why(mine, train)


SWAP = """\
import atexit, os, sys

if "dataset" in sys.orig_argv:
    os.rename("data/mine/train.parquet", "kept.parquet")
    os.rename("other.parquet", "data/mine/train.parquet")
    atexit.register(os.rename, "kept.parquet", "data/mine/train.parquet")
"""


def test_data_that_changes_between_the_plan_and_its_job_is_not_used(mine, tmp_path):
    """Not even if it is as before when the job has ended."""
    before = accuracy(mine)
    shutil.rmtree(mine.path / "results")
    write_part(mine.path / "other.parquet", 60, flipped=True)
    # Python runs it first thing in each process; only those without warm workers are new ones.
    (tmp_path / "sitecustomize.py").write_text(SWAP)
    run = mine.call("--executor", "local", FEDSTAGE_DATA="data", PYTHONPATH=str(tmp_path))
    assert run.code
    assert "not as it was when the run was planned; start it again" in run.output
    assert not mine.files("results/data/*/train.safetensors")
    mine.make(FEDSTAGE_DATA="data")
    assert accuracy(mine) == before


def test_a_run_without_its_data_stops_before_the_first_job(project):
    project.configure(methods=["fedavg"], data=DATA)
    assert "dataset" in plan(project, "nowhere").jobs
    run = project.call(FEDSTAGE_DATA="nowhere")
    assert run.code == 1
    told = f"data folder {project.path / 'nowhere'}: no such folder; set data_folder in config"
    assert run.output.splitlines()[-1].startswith(f"fedstage: data = parquet: {told}")
    assert not project.files("results/data/**/*.safetensors")
    assert not project.files(".snakemake/locks/*")


def test_whose_data_they_are_reruns_nothing(project):
    public = {"digits": {"test": 300, "split_seed": 5}}
    planned = project.configure(methods=["feddf"], public=public).plan().output
    (made,) = (
        recipe
        for recipe in re.findall(r"fedstage run dataset (\S+)", planned)
        if "split_seed: 5" in (project.path / recipe).read_text()
    )
    project.make(made.replace("recipe.yaml", "info.json"))
    plan = project.configure(methods=["fedavg"], data=public).plan()
    assert plan.jobs["partition"] == 1
    assert "dataset" not in plan.jobs
