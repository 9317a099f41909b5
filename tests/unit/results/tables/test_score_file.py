from pathlib import Path

import pandas as pd
import pytest
from measured import described, runs_file, write_metrics
from tests.shared.stages import call

from fedstage.errors import FedstageError
from fedstage.results.tables.runs import last_rounds, read_runs
from fedstage.results.tables.score_file import read_score_file
from fedstage.stages.run_scores import run_scores
from fedstage.storage.files import load_json, save_json

ACCURACIES = {"fedavg": [50.1, 100 / 3], "=fedsdd": [60.0, 70.2]}


@pytest.fixture(name="described")
def described_runs(tmp_path):
    """A runs file in a folder `results`, of two methods with two seeds."""
    runs = [
        described(
            {"method": method, "partition.alpha": 0.1, "seed": seed},
            write_metrics(
                tmp_path / f"{method}{seed}.parquet",
                [accuracy + seed for accuracy in accuracies],
                auc=[None, 70.0 + seed],
            ),
        )
        for method, accuracies in ACCURACIES.items()
        for seed in (0, 1)
    ]
    path = tmp_path / "results/descriptions/e/s.runs.json"
    save_json(path, runs_file(runs, columns=["partition.alpha"], also=["maximum"]))
    return path


@pytest.fixture
def written(described):
    """The scores of these runs, where the workflow writes them."""
    path = described.parents[2] / "tables/e/s.scores.csv"
    run_scores(runs=described, scores=path)
    return path


def test_the_frame_of_the_scores_is_the_frame_of_the_metrics(described, written):
    _, measured = read_runs(described)
    for run in load_json(described)["runs"]:
        Path(run["metrics"]).unlink()
    _, read = read_runs(described, written)
    pd.testing.assert_frame_equal(read, measured, check_exact=True)
    assert list(last_rounds(read)["as_released"]) == [50.1, 51.1, 70.2, 71.2]


def test_tables_of_the_scores_have_the_same_bytes(described, written, tmp_path):
    made = {}
    for name, scores in (("metrics", None), ("scores", written)):
        names = ("csv", "parquet", "markdown", "html", "latex")
        paths = {option: tmp_path / name / option for option in names}
        call("tables", {"runs": described, "scores": scores} | paths)
        made[name] = [path.read_bytes() for path in paths.values()]
    assert made["metrics"] == made["scores"]


def test_runs_without_scores_and_files_that_are_no_scores_are_refused(described, written, tmp_path):
    lines = written.read_text().splitlines(keepends=True)
    written.write_text("".join(line for line in lines if not line.startswith("fedavg,0.1,1")))
    with pytest.raises(FedstageError, match=r"fedavg, partition.alpha = 0.1, seed = 1: no scores"):
        read_runs(described, written)
    wrong = tmp_path / "wrong.csv"
    cases = {"a,b\n1,2\n": "evaluated: no such column", lines[0]: "truncated", "": "no such column"}
    for content, message in cases.items():
        wrong.write_text(content)
        with pytest.raises(FedstageError, match=message):
            read_score_file(wrong)
    wrong.write_text(lines[0] + lines[1].replace("50.1", "much"))
    with pytest.raises(FedstageError, match="top1_accuracy = 'much': must be a number"):
        read_runs(described, wrong)
    with pytest.raises(FedstageError, match=r"absent\.csv: No such file"):
        read_score_file(tmp_path / "absent.csv")


def test_scores_of_other_settings_are_refused(described, written):
    content = load_json(described)
    for run in content["runs"]:
        run["candidates"][0]["parts"][0]["federated"]["client"] |= {"learning_rate": 0.5}
    save_json(described, content)
    named = r"fedavg, partition.alpha = 0.1, seed = 0: settings = \w+: must be \w+, the digest of"
    with pytest.raises(FedstageError, match=named):
        read_runs(described, written)


def test_the_seed_is_not_among_the_settings_also_not_in_the_file_of_a_start(described, written):
    content = load_json(described)
    for run in content["runs"]:
        seed = run["settings"]["seed"]
        own = {"seed": seed, "start": f"results/local_models/seed{seed}/core.safetensors"}
        run["candidates"][0]["parts"][0]["federated"] |= own
    save_json(described, content)
    digests = {row["settings"] for row in read_score_file(written).rows}
    run_scores(runs=described, scores=written)
    assert {row["settings"] for row in read_score_file(written).rows} == digests
    assert len(digests) == 1


def test_texts_that_spreadsheets_compute_are_quoted_and_found(described, written):
    assert "\n'=fedsdd,0.1,0," in written.read_text()
    _, frame = read_runs(described, written)
    assert set(frame["method"]) == {"fedavg", "=fedsdd"}
