"""Which file a file is."""

from pathlib import Path

import pytest

from fedstage.errors import FedstageError
from fedstage.storage.identity import check_identity, identity_of


@pytest.mark.parametrize(
    ("path", "identity"),
    [
        ("results/training/a/recipe.yaml", "training/a/recipe.yaml"),
        (Path("/home/me/results/data/d/info.json"), "data/d/info.json"),
        ("/home/results/project/results/data/d/info.json", "data/d/info.json"),
        ("results/results", "results"),
        ("a.json", None),
        ("results", None),
        ("my_results/a.json", None),
    ],
)
def test_it_is_the_path_below_the_nearest_results(path, identity):
    assert identity_of(path) == identity


@pytest.mark.parametrize(
    ("path", "stated"),
    [
        ("results/a/b", "a/b"),
        ("/x/results/a/b", "a/b"),
        ("/x/results/linked/a/b", "a/b"),
        ("elsewhere/a/b", "c"),
        ("elsewhere/a/b", None),
    ],
)
def test_the_same_file_wherever_it_is(path, stated):
    check_identity(path, stated)


@pytest.mark.parametrize(
    "stated", ["a/participant_2", "participant_0/", "lot_0", "", 7, ["a/participant_0"]]
)
def test_another_file_is_named_with_what_was_expected(stated):
    with pytest.raises(FedstageError) as caught:
        check_identity("results/a/participant_0", stated)
    assert str(caught.value) == (
        f"results/a/participant_0: is {stated}, not a/participant_0: a copy in its place; delete "
        f"it to make it "
        "again"
    )


def test_a_file_of_before_says_what_to_do():
    with pytest.raises(FedstageError, match=r"older version wrote it.*; delete it"):
        check_identity("results/a/participant_0", None)
