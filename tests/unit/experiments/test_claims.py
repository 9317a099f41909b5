from pathlib import Path

import pytest
import yaml

from fedstage.errors import FedstageError
from fedstage.experiments.claims import check_claims, load_claims
from fedstage.settings.scores import Claim

PAPERS = Path(__file__).parents[3] / "workflow/papers"
FORM = {"greater": {"method": "a"}, "than": {"method": "b"}}
GRID = [
    {"method": method, "seed": 0, "partition.alpha": alpha, "data": "cifar10 train_size 500"}
    for method in "abc"
    for alpha in (1.0, 0.1)
]


def raw(**changes):
    return {"id": "i", "text": "t", "place": "p", "experiment": "e", **FORM, **changes}


def written(folder, name, *claims):
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "claims.yaml").write_text(yaml.safe_dump({"claims": list(claims)}))
    if (PAPERS / name).is_dir() and not (folder / name / "numbers.csv").exists():
        (folder / name / "numbers.csv").symlink_to(PAPERS / name / "numbers.csv")


def check(tmp_path, **changes):
    written(tmp_path, "fedsdd", raw(**changes))
    check_claims(load_claims([], tmp_path), ["table"], GRID)


def test_claims_of_the_configuration_and_of_files_are_read(tmp_path):
    written(tmp_path, "b", raw(id="two"), raw(id="three"))
    written(tmp_path, "a", raw(id="one"))
    found = load_claims([Claim(**raw(id="own"))], tmp_path)
    assert [one.claim.id for one in found] == ["own", "one", "two", "three"]
    assert load_claims([], tmp_path / "none") == []


def test_claims_on_other_experiments_are_not_looked_at(tmp_path):
    written(tmp_path, "a", raw(id="one"), {"id": "broken", "experiment": "other"})
    assert [one.claim.id for one in load_claims([], tmp_path, ["e"])] == ["one"]
    with pytest.raises(FedstageError, match=r"claims\.1\.text: missing"):
        load_claims([], tmp_path, ["e", "other"])
    written(tmp_path, "a", raw(id="one"), {"id": "of nothing"})
    with pytest.raises(FedstageError, match=r"claims\.1\.experiment: missing"):
        load_claims([], tmp_path, ["e"])


def test_primary_claims_of_a_file_count_whatever_experiments_they_are_about(tmp_path):
    strong = {"primary": True, "margin": 1.0}
    written(tmp_path, "a", raw(id="one", **strong), raw(experiment="f", **strong), raw(id="two"))
    written(tmp_path, "b", raw(id="three"))
    found = load_claims([], tmp_path, ["e"])
    assert [(one.primary, one.paper) for one in found] == [(2, "a"), (2, "a"), (0, "b")]
    (own,) = load_claims([Claim(**raw(**strong))], tmp_path / "none")
    assert (own.primary, own.paper) == (1, None)


def test_a_file_has_few_primary_claims(tmp_path):
    strong = {"primary": True, "margin": 1.0}
    written(tmp_path, "a", *(raw(id=name, experiment=name, **strong) for name in "efghij"))
    with pytest.raises(FedstageError, match=r"a/claims\.yaml: primary: 6 claims are; at most 5"):
        load_claims([], tmp_path, ["e"])


def test_an_experiment_has_one_claim_of_an_id(tmp_path):
    written(tmp_path, "a", raw(), raw(experiment="f"))
    written(tmp_path, "b", raw())
    with pytest.raises(
        FedstageError,
        match=r"b/claims\.yaml: id = 'i': e has two claims of this id \(.*a/claims\.yaml and",
    ):
        load_claims([], tmp_path)


def test_a_faulty_file_is_named(tmp_path):
    written(tmp_path, "a", raw(greater=None))
    with pytest.raises(
        FedstageError, match=r"a/claims\.yaml: claims\.0: claim 'i': than: give greater"
    ):
        load_claims([], tmp_path)


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
        ({"where": {"partition.alpha": 0.5}}, "alpha = 0.5: no cell of e; use one of 1.0"),
        ({"than": {"method": "a"}}, "compares no cells of e"),
    ],
    ids=str,
)
def test_what_names_nothing_is_told_in_one_line(tmp_path, changes, told):
    with pytest.raises(FedstageError) as caught:
        check(tmp_path, **changes)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'fedsdd/claims.yaml'}: i: ")
    assert told in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("results", "metric", "passes"),
    [
        (["table"], "round_s", False),
        (["table", "round_times"], "round_s", True),
        (["round_times"], "added_s", True),
        (["table"], "bytes_up", True),
        (["table"], "times_one_shot", False),
        (["table", "communication"], "times_one_shot", True),
        (["table", "communication"], "round_s", False),
        (["table", "communication"], "forget_score", False),
        (["table", "retention"], "forget_score", True),
        (["retention"], "fluctuation", True),
        (["table"], None, True),
    ],
)
def test_seconds_are_claimed_of_experiments_that_measure_them(tmp_path, results, metric, passes):
    written(tmp_path, "fedsdd", raw(metric=metric))
    claims = load_claims([], tmp_path)
    if passes:
        check_claims(claims, results, GRID)
        return
    needed = {"round_s": "round_times", "forget_score": "retention"}.get(metric, "communication")
    told = f"fedsdd/claims.yaml: i: metric = '{metric}': only of experiments with {needed} among"
    with pytest.raises(FedstageError, match=told):
        check_claims(claims, results, GRID)


# --- what papers state ----------------------------------------------------------------------------

BOUNDED = {"greater": None, "than": None, "ratio": {"method": "a"}, "to": {"method": "b"}}
BOUNDED |= {"at_least": 3.6}
ONE_SHOT = {"quantity": "client_communication_relative_to_one_shot"}


def stated(tmp_path, table, where=None):
    written(tmp_path, "fens", raw(**BOUNDED, stated={"table": table, "where": where or {}}))
    (one,) = load_claims([], tmp_path)
    return one.claim.stated


def test_a_statement_is_a_range_or_a_number_of_the_papers(tmp_path):
    assert stated(tmp_path, "text_sec3.2", ONE_SHOT) == (3.6, 4.3)
    assert stated(tmp_path, "text_sec3.1", {"method": "fedavg_stc"}) == (4.0, 4.0)


def test_a_statement_about_what_is_forgotten_is_of_the_paper_too(tmp_path):
    where = {"teacher": "straggler"}
    about = {"metric": "distance", "stated": {"table": "text_sec4.3", "where": where}}
    written(tmp_path, "bkd", raw(**about))
    (one,) = load_claims([], tmp_path)
    assert one.claim.stated == (44.0, 44.0)


@pytest.mark.parametrize(
    ("table", "where", "found"),
    [
        ("text_sec3.2", {"quantity": "x"}, "0 rows of text_sec3.2 have quantity = x"),
        ("text_sec9", None, "0 rows of text_sec9"),
        ("text_sec3.3", {"method": "fedadam"}, "4 rows of text_sec3.3 have method = fedadam"),
        ("text_sec3.2", {"bound": "low"}, "1 rows of text_sec3.2 have bound = low"),
    ],
    ids=str,
)
def test_a_statement_that_is_none_or_several_is_told(tmp_path, table, where, found):
    with pytest.raises(FedstageError) as caught:
        stated(tmp_path, table, where)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'fens/claims.yaml'}: i: stated: {found}")
    assert message.endswith("; name one, or two of bound = low and high")


def test_claims_of_the_configuration_state_numbers_themselves(tmp_path):
    own = Claim(**raw(**BOUNDED, stated=[3.6, 4.3]))
    assert load_claims([own], tmp_path)[0].claim.stated == (3.6, 4.3)
    named = Claim(**raw(**BOUNDED, stated={"table": "text_sec3.2"}))
    told = r"^config\.yaml: claims: i: stated\.table = 'text_sec3\.2': only in a file of a paper's"
    with pytest.raises(FedstageError, match=told):
        load_claims([named], tmp_path)
