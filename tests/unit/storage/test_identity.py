"""Which file a file is."""

from pathlib import Path

import pytest

from fedstage.errors import FedstageError
from fedstage.storage.identity import check_identity, identity_of


def test_it_is_the_path_below_the_nearest_results():
    for path, identity in {
        "results/training/a/recipe.yaml": "training/a/recipe.yaml",
        Path("/home/me/results/data/d/info.json"): "data/d/info.json",
        "/home/results/project/results/data/d/info.json": "data/d/info.json",
        "results/results": "results",
        "a.json": None,
        "results": None,
        "my_results/a.json": None,
    }.items():
        assert identity_of(path) == identity


def test_the_same_file_is_taken_wherever_it_is():
    for path in ("results/a/b", "/x/results/a/b", "/x/results/linked/a/b"):
        check_identity(path, "a/b")
    for stated in ("c", None):
        check_identity("elsewhere/a/b", stated)


def test_another_file_is_named_with_what_was_expected():
    path = "results/a/participant_0"
    for stated in ("a/participant_2", "participant_0/", "lot_0", "", 7, ["a/participant_0"]):
        with pytest.raises(FedstageError) as caught:
            check_identity(path, stated)
        assert str(caught.value) == (
            f"{path}: is {stated}, not a/participant_0: a copy in its place; delete it to make it "
            "again"
        )
    with pytest.raises(FedstageError, match=r"older version wrote it.*; delete it"):
        check_identity(path, None)
