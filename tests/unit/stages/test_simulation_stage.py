import csv
import shutil
import statistics
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from PIL import Image

from fedstage.execution.cli import main
from fedstage.experiments.catalogue import load_catalogue
from fedstage.experiments.descriptions import describe_runs
from fedstage.results.figures.style import PAGE
from fedstage.results.runs_file import read_runs_file
from fedstage.results.simulation.schedule import schedule
from fedstage.stages.simulation import choose_panels, simulation
from fedstage.storage.files import save_json

LABELS = {"feddf": "FedDF", "fedsdd": "FedSDD"}
METHODS = Path(__file__).parents[3] / "workflow/methods.yaml"
SIMULATION = {
    "local_training": {"mean": 10.0, "variation": 0.5},
    "logits": 2.0,
    "distillation": 20.0,
    "availability": {"share": 0.5, "interval": 30.0},
    "rounds_ahead": 1,
    "shown_rounds": 2,
}


def write(folder, **changes):
    raw = {
        "title": "The title",
        "base": {
            "data": {"digits": {"held_out": 100}},
            "clients": 10,
            "partition": "iid",
            "model": "cnn_small",
            "rounds": 4,
            "client": {"epochs": 1, "batch_size": 16, "learning_rate": 0.05},
            "server": {"steps": 20, "batch_size": 16, "learning_rate": 0.01},
        },
        "grid": {"method": ["feddf", "fedsdd"], "participants": [4, 8], "seed": [0, 1]},
        "table": {"columns": ["participants"]},
        "simulation": SIMULATION,
        "scales": {"default": None},
        **changes,
    }
    shutil.copy(METHODS, folder)
    catalogue = load_catalogue({"targets": ["e"], "experiments": {"e": raw}}, folder)
    path = folder / "runs.json"
    save_json(path, describe_runs(catalogue, "e", "default"))
    return path


@pytest.fixture
def runs(tmp_path):
    return write(tmp_path)


def make(runs, name="s"):
    names = {"markdown": "md", "csv": "csv", "jobs": "parquet", "figure": "png"}
    paths = {key: runs.parent / f"{name}.{suffix}" for key, suffix in names.items()}
    simulation(runs=runs, **paths | {"figure": [paths["figure"]]})
    return paths


def measures(runs, method, participants):
    experiment = read_runs_file(runs)
    place = experiment.places()[method, participants]
    return [schedule(run.recipe, 4, experiment.simulation).measures for run in place]


def test_the_table_has_mean_and_deviation_over_seeds_of_each_place(runs):
    paths = make(runs)
    rows = list(csv.DictReader(paths["csv"].open()))
    assert [(row["method"], row["participants"]) for row in rows] == [
        ("feddf", "4"),
        ("feddf", "8"),
        ("fedsdd", "4"),
        ("fedsdd", "8"),
    ]
    for row in rows:
        found = measures(runs, row["method"], int(row["participants"]))
        assert int(row["seeds"]) == len(found) == 2
        for name in ("round_seconds", "bound", "server_idle", "clients_idle"):
            values = [getattr(one, name) for one in found]
            assert float(row[name]) == statistics.mean(values)
            assert float(row[f"{name}_std"]) == statistics.stdev(values)


def test_the_markdown_says_what_was_simulated(runs):
    text = make(runs)["markdown"].read_text(encoding="utf-8")
    assert text.startswith("# The title\n")
    for said in (
        "local_training 10 ± 5, aggregation 0, logits 2, distillation 20",
        "available 50 % of the time",
        "at most 1 rounds beyond",
    ):
        assert said in text
    assert "\n| Method | Participants | Seconds a round |" in text
    first = measures(runs, "feddf", 4)
    seconds = [one.round_seconds for one in first]
    mean, std = statistics.mean(seconds), statistics.stdev(seconds)
    assert f"| FedDF | 4 | {mean:.1f} ± {std:.1f} |" in text


def test_every_job_has_a_row_with_its_start_and_end(runs):
    rows = pq.read_table(make(runs)["jobs"]).to_pylist()
    assert {row["run"] for row in rows} == {
        f"method = {method}, participants = {count}"
        for method in ("feddf", "fedsdd")
        for count in (4, 8)
    }
    run = [
        row for row in rows if (row["run"][9:14], row["run"][-1], row["seed"]) == ("feddf", "4", 1)
    ]
    stages = [row["stage"] for row in run]
    counts = {"local_training": 16, "aggregation": 4, "logits": 4, "distillation": 4}
    assert {stage: stages.count(stage) for stage in stages} == counts
    assert [row["start"] for row in run] == sorted(row["start"] for row in run)
    for row in run:
        assert (row["client"] is not None) == (row["stage"] == "local_training")
    found = measures(runs, "feddf", 4)[1]
    assert max(row["end"] for row in run) / 4 == found.round_seconds


def test_the_figure_shows_the_methods_of_the_first_seed_and_column(runs):
    experiment = read_runs_file(runs)
    scheduled = [(run, schedule(run.recipe, 4, experiment.simulation)) for run in experiment.runs]
    until, panels = choose_panels(experiment, scheduled)
    slowest = scheduled[0][1]
    assert [panel.label for panel in panels] == [
        f"{LABELS[run.settings['method']]}: {made.measures.round_seconds:.1f} s a round"
        for run, made in scheduled
        if (run.settings["participants"], run.recipe.seed) == (4, 0)
    ]
    assert until == max(span.end for job, span in slowest.spans.items() if job.round <= 2)
    for panel in panels:
        stages = {job.stage for job in panel.spans}
        assert stages == {"local_training", "logits", "distillation"}
        assert max(span.start for span in panel.spans.values()) < until
        assert len(panel.away) == 10
        assert any(panel.away.values())


def test_runs_of_the_same_schedule_share_a_panel(runs):
    """FedSDD's runs as they are, and FedDF's under two names."""
    experiment = read_runs_file(runs)
    labels = experiment.labels | {"feddf_again": "FedDF again"}
    feddf, fedsdd = (
        next(run for run in experiment.runs if run.settings["method"] == method)
        for method in ("feddf", "fedsdd")
    )
    again = feddf.model_copy(update={"settings": feddf.settings | {"method": "feddf_again"}})
    changes = {"labels": labels, "runs": [feddf, fedsdd, again]}
    three = experiment.model_copy(update=changes)
    scheduled = [(run, schedule(run.recipe, 4, three.simulation)) for run in three.runs]
    _, panels = choose_panels(three, scheduled)
    assert [panel.label.split(":")[0] for panel in panels] == [
        f"{LABELS['feddf']}; FedDF again",
        LABELS["fedsdd"],
    ]


def test_the_figure_is_a_png(runs):
    with Image.open(make(runs)["figure"]) as image:
        assert image.format == "PNG"
        assert image.size[0] == 300 * PAGE


def test_the_same_runs_give_the_same_bytes(runs):
    one, other = make(runs, "one"), make(runs, "other")
    for kind, path in one.items():
        assert path.read_bytes() == other[kind].read_bytes()


def test_another_suffix_ends_the_command_with_one_line(runs, tmp_path, capsys):
    arguments = ["--runs", runs]
    for kind, suffix in (
        ("markdown", "md"),
        ("csv", "csv"),
        ("jobs", "parquet"),
        ("figure", "gif"),
    ):
        arguments += [f"--{kind}", tmp_path / f"s.{suffix}"]
    assert main(["simulation", *map(str, arguments)]) == 1
    assert "must be .png, .svg, .pdf, or .txt" in capsys.readouterr().err
