import pytest

from fedstage.errors import FedstageError
from fedstage.settings.scores import Claim, ClaimList
from fedstage.settings.validation import validate

ABOUT = {"id": "a", "text": "t", "place": "p", "experiment": "e"}
A, B = {"method": "a"}, {"method": "b"}


@pytest.mark.parametrize(
    "form",
    [
        {"greater": A, "than": B},
        {"less": A, "than": B, "quantifier": "mean"},
        {"ratio": A, "to": B, "at_most": 1.1},
        {"ratio": A, "to": B, "at_least": 1.5, "metric": "seconds"},
        {"ratio": A, "to": B, "at_least": 3.6, "at_most": 4.3, "stated": (3.6, 4.3)},
        {"difference": A, "to": B, "at_least": -2.0, "at_most": 0.0},
        {"value": A, "at_most": 96.0},
        {"greater": A, "than": {"method": ["b", "c"]}, "where": {"partition.alpha": 0.1}},
        {"greater": A, "than": B, "margin": 1.0, "primary": True},
        {"ratio": A, "to": B, "at_most": 1.1, "primary": True},
    ],
    ids=str,
)
def test_a_claim_compares_two_sides(form):
    claim = validate(Claim, ABOUT | form, "here")
    assert claim.model_dump(exclude_defaults=True) == ABOUT | form


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({}, "no comparison"),
        ({"greater": A}, "greater"),
        ({"greater": A, "less": A, "than": B}, "greater, less, than"),
        ({"ratio": A, "to": B}, "ratio, to"),
        ({"difference": A, "to": B}, "difference, to"),
        ({"difference": A, "than": B, "at_most": 1.0}, "at_most, difference, than"),
        ({"value": A}, "value"),
        ({"value": A, "to": B, "at_most": 1.0}, "at_most, to, value"),
        ({"at_most": 1.0}, "at_most"),
        ({"greater": A, "than": B, "at_most": 2.0}, "at_most, greater, than"),
    ],
    ids=str,
)
def test_other_forms_are_refused_by_id(form, told):
    with pytest.raises(FedstageError, match=f"^here: claim 'a': {told}: give greater and than"):
        validate(Claim, ABOUT | form, "here")


@pytest.mark.parametrize(
    ("form", "told"),
    [
        (
            {"ratio": A, "to": B, "at_least": 2.0, "at_most": 1.0},
            "at_least = 2: must not be above at_most = 1",
        ),
        ({"ratio": A, "to": B, "at_most": 0.0}, "at_most = 0: of a ratio must be above 0"),
        (
            {"ratio": A, "to": B, "at_most": 2.0, "margin": 1.0},
            "margin = 1: only with greater or less; the bounds of other claims are their margins",
        ),
        (
            {"greater": A, "than": B, "primary": True},
            "margin: missing, a primary claim must have one",
        ),
    ],
    ids=str,
)
def test_bounds_that_nothing_can_meet_are_refused(form, told):
    with pytest.raises(FedstageError, match=f"^here: claim 'a': {told}$"):
        validate(Claim, ABOUT | form, "here")


def test_a_file_has_claims():
    content = {"claims": [ABOUT | {"greater": A, "than": B}]}
    assert validate(ClaimList, content, "f.yaml").claims[0].id == "a"
    with pytest.raises(FedstageError, match=r"f\.yaml: claims: missing"):
        validate(ClaimList, {}, "f.yaml")
    content["claims"][0] |= {"id": "not a name"}
    told = r"f\.yaml: claims\.0\.id = 'not a name': must consist of letters, digits, _ and -"
    with pytest.raises(FedstageError, match=told):
        validate(ClaimList, content, "f.yaml")
