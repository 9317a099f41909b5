import pytest
import yaml

from fedstage.claims.library import check_claims, check_metrics, load_claims
from fedstage.claims.settings import Claim
from fedstage.errors import FedstageError
from fedstage.experiments import Experiment

FORM = {"greater": {"method": "a"}, "than": {"method": "b"}}
GRID = [
    {"method": method, "seed": 0, "partition.alpha": alpha, "data": "cifar10 train_size 500"}
    for method in "abc"
    for alpha in (1.0, 0.1)
]


def raw(**changes):
    return {"id": "i", "text": "t", "place": "p", "experiment": "e", **FORM, **changes}


def written(folder, name, *claims):
    (folder / f"{name}.yaml").write_text(yaml.safe_dump({"paper": name, "claims": list(claims)}))


def check(tmp_path, grid=None, **changes):
    written(tmp_path, "fedsdd", raw(**changes))
    check_claims(load_claims([], tmp_path), {"e": GRID if grid is None else grid})


def test_claims_of_the_configuration_and_of_files_are_read(tmp_path):
    written(tmp_path, "b", raw(id="two"), raw(id="three"))
    written(tmp_path, "a", raw(id="one"))
    found = load_claims([Claim(**raw(id="own"))], tmp_path)
    assert [one.claim.id for one in found] == ["own", "one", "two", "three"]
    assert load_claims([], tmp_path / "none") == []


def test_an_experiment_has_one_claim_of_an_id(tmp_path):
    written(tmp_path, "a", raw(), raw(experiment="f"))
    written(tmp_path, "b", raw())
    with pytest.raises(
        FedstageError, match=r"b\.yaml: id = 'i': e has two claims of this id \(.*a\.yaml and"
    ):
        load_claims([], tmp_path)


def test_a_faulty_file_is_named(tmp_path):
    written(tmp_path, "a", raw(greater=None))
    with pytest.raises(FedstageError, match=r"a\.yaml: claims\.0: claim 'i': than: give greater"):
        load_claims([], tmp_path)


def test_claims_on_experiments_that_are_not_there_wait(tmp_path):
    check(tmp_path, experiment="later", greater={"metod": "x"})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"where": {"partition.alpha": [0.1, 1]}},
        {"where": {"data": "cifar10"}},
        {"greater": {"method": "a", "partition.alpha": 1.0}},
    ],
    ids=str,
)
def test_claims_on_cells_that_are_there_pass(tmp_path, changes):
    check(tmp_path, **changes)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"greater": {"metod": "a"}}, "metod: no axis of e; use one of method, seed, partition"),
        ({"where": {"seed": 0}}, "seed: no axis of e"),
        ({"than": {"method": ["b", "d"]}}, "method = 'd': no cell of e; use one of a, b, c"),
        (
            {"where": {"partition.alpha": 0.5}},
            "alpha = 0.5: no cell of e; use one of 1.0",
        ),
        ({"than": {"method": "a"}}, "compares no cells of e"),
    ],
    ids=str,
)
def test_what_names_nothing_is_told_in_one_line(tmp_path, changes, told):
    with pytest.raises(FedstageError) as caught:
        check(tmp_path, **changes)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'fedsdd.yaml'}: i: ")
    assert told in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("results", "metric", "passes"),
    [
        (["table"], "round_s", False),
        (["table", "round_times"], "round_s", True),
        (["round_times"], "added_s", True),
        (["table"], "bytes_up", True),
        (["table"], None, True),
    ],
)
def test_seconds_are_claimed_of_experiments_that_measure_them(tmp_path, results, metric, passes):
    written(tmp_path, "fedsdd", raw(metric=metric), raw(experiment="later", metric="round_s"))
    claims, timed = (
        load_claims([], tmp_path),
        Experiment(title="t", results=results, scales={"a": None}),
    )
    if passes:
        check_metrics(claims, {"e": timed})
        return
    told = "fedsdd.yaml: i: metric = 'round_s': only of experiments with round_times among"
    with pytest.raises(FedstageError, match=told):
        check_metrics(claims, {"e": timed})
