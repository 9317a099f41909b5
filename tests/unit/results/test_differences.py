"""Comparisons of rows and best values of a target in a working folder."""

import numpy as np
import pytest
import yaml
from scipy import stats
from statsmodels.stats.multitest import multipletests
from tests.unit.results.conftest import ACCURACIES, tidy_of

from fedstage import results
from fedstage.errors import FedstageError
from fedstage.results.differences import compare_table
from fedstage.results.tidy import write_tidy

TARGET = "tiny/mini"


def saved(folder, tidy):
    path = folder / "results/tables/tiny/mini.scores.parquet"
    path.parent.mkdir(parents=True)
    write_tidy(path, tidy)
    return folder


@pytest.fixture
def folder(tmp_path, tidy):
    return saved(tmp_path, tidy)


def test_p_values_are_those_of_scipy_and_statsmodels(folder):
    found = results.compare(TARGET, folder=folder)
    pairs = [("local_only", "fedavg"), ("local_only", "fedsdd"), ("fedavg", "fedsdd")]
    expected = [
        stats.ttest_rel(ACCURACIES[left, alpha], ACCURACIES[right, alpha]).pvalue
        for alpha in (0.1, 1.0)
        for left, right in pairs
    ]
    both = zip(found["p"], multipletests(expected, method="holm")[1], strict=True)
    assert all(np.isclose(one, other) for one, other in both)
    assert found["column"].unique().tolist() == ["α = 0.1", "α = 1"]
    assert set(found["verdict"]) == {"lower", "undecided"}


def test_a_baseline_is_compared_with_in_its_own_column(folder):
    found = results.compare(TARGET, ["fedsdd"], baseline="fedavg", folder=folder)
    assert found[["row", "than"]].drop_duplicates().to_numpy().tolist() == [["FedSDD", "FedAvg"]]
    assert found["difference"].tolist() == pytest.approx([71 - 182.5 / 3, 0.0])
    shown = compare_table(found, TARGET).shown
    assert shown["difference"].tolist() == ["+10.17", "+0.00"]


def test_unknown_rows_are_refused(folder):
    with pytest.raises(FedstageError, match="rows: 'fedx': no such row; use one of local_only"):
        results.compare(TARGET, ["fedx"], folder=folder)


def test_a_target_without_results_says_what_makes_them(folder):
    with pytest.raises(FedstageError, match=r"there are the scores of tiny/mini; .*snakemake"):
        results.scores("other", folder)


def test_scores_have_labels_and_the_header(folder):
    frame = results.scores(TARGET, folder)
    assert frame.attrs["title"] == "Tiny"
    assert dict(zip(frame["method"], frame["label"], strict=True))["fedavg"] == "FedAvg"


def test_accuracies_by_class_leave_the_label_to_the_method(tmp_path):
    made = tidy_of(ACCURACIES)
    saved(tmp_path, made._replace(frame=made.frame.assign(client=1, label=2)))
    frame = results.scores(TARGET, tmp_path)
    assert (frame["class"] == 2).all()
    assert "FedAvg" in set(frame["label"])


def test_the_best_value_of_a_swept_axis_is_yaml_to_paste(tmp_path):
    tried = {("fedavg", rate): [50.0 + 10 * rate, 52.0] for rate in (0.1, 1.0)}
    tidy = tidy_of(tried)
    rename = {"partition.alpha": "client.learning_rate"}
    cells = [
        cell.model_copy(
            update={
                "role": "validation",
                "axes": {rename.get(k, k): v for k, v in cell.axes.items()},
            }
        )
        for cell in tidy.header.cells
    ]
    header = tidy.header.model_copy(update={"cells": cells, "columns": [*rename.values()]})
    frame = tidy.frame.rename(columns=rename).assign(role="validation")
    folder = saved(tmp_path, tidy._replace(frame=frame, header=header))
    text = results.best(TARGET, folder=folder)
    assert yaml.safe_load(text)["cells"] == [
        {"at": {"method": "fedavg"}, "settings": {"client": {"learning_rate": 1.0}}}
    ]
    assert "the best of 0.1, 1 is the largest: widen the grid" in text


def test_best_refuses_test_samples(folder):
    with pytest.raises(FedstageError, match="choose on validation samples only"):
        results.best(TARGET, folder=folder)
