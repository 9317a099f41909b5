import pytest
from measured import CANDIDATES, write_metrics
from PIL import Image

from fedstage.data.partitions import HISTOGRAM_SCHEMA
from fedstage.plan.results import FORMATS
from fedstage.results.figures.style import COLUMN
from fedstage.stages.figures import figures
from fedstage.storage.files import save_json
from fedstage.storage.tables import save_table


def write_histogram(path, clients=5, classes=4):
    points = [(client, label) for client in range(clients) for label in range(classes)]
    columns = {
        "client": [client for client, _ in points],
        "role": ["train"] * len(points),
        "label": [label for _, label in points],
        "samples": [1 + 10 * client + label for client, label in points],
    }
    save_table(path, columns, HISTOGRAM_SCHEMA)
    return str(path)


@pytest.fixture
def runs(tmp_path):
    listed = [
        {
            "settings": {"method": method, "seed": seed},
            "metrics": write_metrics(tmp_path / f"{method}{seed}.parquet", accuracies),
            "partition": write_histogram(tmp_path / f"histogram{seed}.parquet"),
            "candidates": CANDIDATES,
        }
        for method, accuracies in (("fedavg", [30.0, 50.0, 60.0]), ("local_only", [40.0]))
        for seed in (0, 1)
    ]
    content = {"experiment": "e", "scale": "s", "title": "t", "rows": ["method"], "runs": listed}
    path = tmp_path / "runs.json"
    save_json(path, content)
    return path


def make(runs, name="", suffix="png"):
    paths = [runs.parent / f"{name}{kind}.{suffix}" for kind in ("accuracy", "partition")]
    figures(runs=runs, accuracy=[paths[0]], partition=[paths[1]])
    return paths


def test_figures_are_png_of_a_readable_size(runs):
    for path in make(runs):
        with Image.open(path) as image:
            assert image.format == "PNG"
            width, height = image.size
            assert width == 300 * COLUMN
            assert 350 < height < 1600
            assert len(image.convert("RGB").getcolors(maxcolors=1 << 20)) > 50


def test_both_figures_are_made_in_all_formats_with_captions(runs, tmp_path):
    paths = {
        name: [tmp_path / f"{name}.{kind}" for kind in FORMATS]
        for name in ("accuracy", "partition")
    }
    figures(runs=runs, **paths)
    assert all(path.stat().st_size for files in paths.values() for path in files)
    accuracy, partition = (files[-1].read_text() for files in paths.values())
    assert accuracy.startswith("t. Over rounds on test samples.")
    assert "single seeds" in accuracy
    assert partition.startswith("t. Partition over clients.")
    assert "seed 0" in partition
