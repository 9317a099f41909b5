"""Copies over other files, and flipped bits, in tensors and tables.

FEDSTAGE_FLIPS is the number of flips, by default 200.
"""

import os
import random
import re
import shutil
from pathlib import Path

import pytest

from fedstage.algorithm.exchange.updates import read_updates
from fedstage.errors import FedstageError
from fedstage.plan.training import updates
from fedstage.storage.files import WRITTEN_FILES, identity_of, save_json
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import check_statement, load_tensors, map_tensors

READERS = {".safetensors": [load_tensors, map_tensors], ".parquet": [load_table]}

#: Files of a kind: copies of some over others.
KINDS = [
    "initial_models/*/group_*.safetensors",
    "training/*/round_*/group_0/participant_*.safetensors",
    "training/*/round_*/group_*/aggregated.safetensors",
    "training/*/round_*/group_*/state.safetensors",
    "training/*/round_*/group_*/logits/*.safetensors",
    "training/*/round_*/group_*/participants.parquet",
    "data/*/t*.safetensors",
    "partitions/*/*.parquet",
]

# --- which file a file is -------------------------------------------------------------------------


def test_the_identity_is_the_path_below_the_nearest_results():
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


def test_the_same_file_is_taken_wherever_it_is_and_another_is_named():
    for path in ("results/a/b", "/x/results/a/b", "/x/results/linked/a/b"):
        check_statement(path, {"file": "a/b"})
    check_statement("elsewhere/a/b", {"file": "c"})
    path = "results/a/participant_0"
    for stated in ("a/participant_2", "participant_0/", "lot_0", "", 7, ["a/participant_0"], None):
        with pytest.raises(FedstageError) as caught:
            check_statement(path, {"file": stated})
        assert str(caught.value) == (
            f"{path}: is {stated}, not a/participant_0: a copy in its place; delete it to make it "
            "again"
        )


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_in_the_place_of_another_is_refused(small, kind):
    one, other = sorted(Path("results").glob(kind))[:2]
    shutil.copy(other, one)
    names = [str(path.relative_to("results")) for path in (one, other)]
    for read in READERS[one.suffix]:
        with pytest.raises(FedstageError) as caught:
            read(one)
        message = f"{one}: is {names[1]}, not {names[0]}: a copy in its place; delete it"
        assert str(caught.value).startswith(message)
        read(other)


def test_an_average_does_not_take_one_update_twice(small, small_recipe):
    one, other = map(Path, updates(small_recipe, 1, 0)[:2])
    shutil.copy(one, other)
    with pytest.raises(FedstageError, match=re.escape(f"{other}: is ")):
        read_updates([one, other])


@pytest.mark.parametrize("how", ["moved", "linked", "absolute", "renamed"])
def test_results_may_be_anywhere(small, tmp_path, how):
    kept = sorted(path for kind in KINDS for path in Path("results").glob(kind))
    root = Path("results")
    if how == "moved":
        root = Path(shutil.move("results", tmp_path / "other" / "results"))
    elif how == "linked":
        (tmp_path / "disk").mkdir()
        shutil.move("results", tmp_path / "disk/results")
        shutil.move(tmp_path / "disk/results/training", tmp_path / "disk/trained")
        root.symlink_to(tmp_path / "disk/results")
        (root / "training").symlink_to(tmp_path / "disk/trained")
    elif how == "absolute":
        root = root.absolute()
    else:
        root = Path(shutil.move("results", "results_of_june"))
    for path in kept:
        for read in READERS[path.suffix]:
            read(root / path.relative_to("results"))


def test_what_a_job_wrote_is_noted(tmp_path):
    paths = [str(tmp_path / name) for name in ("a.json", "b.json")]
    for path in paths:
        save_json(path, {})
    assert WRITTEN_FILES[-2:] == paths


# --- flipped bits ---------------------------------------------------------------------------------


def test_a_flipped_bit_is_refused(small):
    draw = random.Random(18)
    paths = [path for path in sorted(Path("results").rglob("*")) if path.suffix in READERS]
    for _ in range(int(os.environ.get("FEDSTAGE_FLIPS", "200"))):
        path = draw.choice(paths)
        whole = path.read_bytes()
        # Half of them in the first or last bytes: headers and footers.
        place = draw.randrange(len(whole))
        if draw.random() < 0.5:
            place = draw.choice([1, -1]) * draw.randrange(1, min(600, len(whole)))
        raw = bytearray(whole)
        raw[place] ^= (bit := 1 << draw.randrange(8))
        path.write_bytes(raw)
        for read in READERS[path.suffix]:
            with pytest.raises(FedstageError, match=re.escape(f"{path}: ")):
                pytest.fail(f"{path}, {place}, {bit}: {read(path)}")
        path.write_bytes(whole)
