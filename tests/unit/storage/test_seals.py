"""Seals of JSON and YAML."""

import json
import math
from pathlib import Path

import pytest

from fedstage.errors import FedstageError
from fedstage.storage.files import load_json, save_json
from fedstage.storage.seals import sealed, unsealed

CONTENT = {"classes": 10, "mean": [0.1, 1e-5], "names": {"1": "ä"}, "none": None, "yes": True}
PATH = Path("results/data/d/info.json")


def refusal(content, path=PATH):
    with pytest.raises(FedstageError) as caught:
        unsealed(content, path)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value)


def test_content_comes_back_and_another_program_reads_it_as_before():
    written = sealed(CONTENT, PATH)
    assert unsealed(json.loads(json.dumps(written)), PATH) == CONTENT
    assert CONTENT.items() <= written.items()
    assert sealed(written, PATH) == written


def test_numbers_as_keys_and_not_a_number():
    read = json.loads(json.dumps(sealed({"a": {10: 1, 9: 2}, "b": math.nan}, PATH)))
    assert unsealed(read, PATH)["a"] == {"10": 1, "9": 2}


@pytest.mark.parametrize("key", CONTENT)
def test_other_content_is_refused(key):
    assert "altered" in refusal(sealed(CONTENT, PATH) | {key: "other"})
    assert "altered" in refusal({k: v for k, v in sealed(CONTENT, PATH).items() if k != key})


def test_without_a_seal_it_is_refused():
    assert "older version" in refusal(CONTENT)
    assert "older version" in refusal(CONTENT | {"fedstage": {"file": "data/d/info.json"}})


def test_the_file_that_it_states_is_sealed_too():
    content = sealed(CONTENT, "results/data/e/info.json")
    assert "is data/e/info.json, not data/d/info.json" in refusal(content)
    content["fedstage"]["file"] = "data/d/info.json"
    assert "altered" in refusal(content)


def test_every_flip_in_json_is_refused_or_changes_nothing(tmp_path):
    path = tmp_path / "results/info.json"
    save_json(path, CONTENT)
    raw = path.read_bytes()
    for place in range(len(raw)):
        for bit in range(8):
            altered = bytearray(raw)
            altered[place] ^= 1 << bit
            path.write_bytes(altered)
            try:
                assert load_json(path) == CONTENT
            except FedstageError as error:
                assert str(error).startswith(f"{path}: ")  # noqa: PT017
