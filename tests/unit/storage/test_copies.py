"""Artefacts of a real run that are copied over others of their kind, or damaged by a bit.

FEDSTAGE_FLIPS is the number of flips, by default 200.
"""

import os
import random
import re
import shutil
from pathlib import Path

import pytest
import torch

from fedstage.algorithm.exchange.updates import read_updates
from fedstage.errors import FedstageError
from fedstage.plan.training import updates
from fedstage.settings.recipes import Recipe
from fedstage.storage.files import load_json
from fedstage.storage.tables import load_table
from fedstage.storage.tensors import load_tensors, map_tensors
from fedstage.storage.yaml_files import read_recipe

READERS = {
    ".safetensors": [load_tensors, map_tensors],
    ".parquet": [load_table, lambda path: load_table(path, where={"round": 1})],
    ".json": [load_json],
    ".yaml": [lambda path: read_recipe(path, Recipe)],
}

#: Files of a kind: copies of some over others.
KINDS = [
    "initial_models/*/group_*.safetensors",
    "training/*/round_*/group_0/participant_*.safetensors",
    "training/*/round_*/group_*/aggregated.safetensors",
    "training/*/round_*/group_*/state.safetensors",
    "training/*/round_*/group_*/logits/*.safetensors",
    "training/*/round_*/group_*/participants.parquet",
    "training/*/recipe.yaml",
    "data/*/t*.safetensors",
    "partitions/*/*.parquet",
    "logs/local_training/*.record.json",
]


def readers(path):
    """The readers of a kind of file; the second of tables is for those that have rounds."""
    all_of = READERS[path.suffix]
    return all_of if "round" in str(path) else all_of[:1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_in_the_place_of_another_is_refused(small, kind):
    one, other = sorted(Path("results").glob(kind))[:2]
    shutil.copy(other, one)
    names = [str(path.relative_to("results")) for path in (one, other)]
    for read in readers(one):
        with pytest.raises(FedstageError) as caught:
            read(one)
        message = f"{one}: is {names[1]}, not {names[0]}: a copy in its place; delete it"
        assert str(caught.value).startswith(message)
        read(other)


def test_a_copy_from_another_round_recipe_or_data_set_is_refused(small):
    for pattern in ("round_0001", "-seed5-", "group_0"):
        (path, *_) = sorted(
            Path("results/training").glob("*/round_*/group_0/participant_*.safetensors")
        )
        elsewhere = Path(str(path).replace(pattern, pattern.translate({48: "7", 53: "6"})))
        assert elsewhere != path
        elsewhere.parent.mkdir(parents=True)
        shutil.copy(path, elsewhere)
        with pytest.raises(FedstageError, match="a copy in its place"):
            load_tensors(elsewhere)


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
        for read in readers(path):
            read(root / path.relative_to("results"))


def same(one, other):
    """Whether two readings are the same content."""
    if isinstance(one, tuple):  # tensors and metadata
        alike = one[1] == other[1] and one[0].keys() == other[0].keys()
        return alike and all(torch.equal(tensor, other[0][name]) for name, tensor in one[0].items())
    return one == other


def test_a_flipped_bit_is_refused_or_changes_nothing(small):
    draw = random.Random(18)
    paths = [path for path in sorted(Path("results").rglob("*")) if path.suffix in READERS]
    before = {path: [read(path) for read in readers(path)] for path in paths}
    accepted = 0
    for _ in range(int(os.environ.get("FEDSTAGE_FLIPS", "200"))):
        path = draw.choice(paths)
        raw = bytearray(path.read_bytes())
        # Half of them in the first or last bytes: headers and footers.
        place = draw.randrange(len(raw))
        if draw.random() < 0.5:
            place = draw.choice([draw.randrange(min(600, len(raw))), -1 - draw.randrange(len(raw))])
        bit = 1 << draw.randrange(8)
        raw[place] ^= bit
        whole = path.read_bytes()
        path.write_bytes(raw)
        for read, right in zip(readers(path), before[path], strict=True):
            try:
                found = read(path)
            except FedstageError:
                continue
            accepted += 1
            assert same(found, right), (path, place, bit)
        path.write_bytes(whole)
    print(f"{accepted} readings of flipped files gave the same content")
