"""Files that have the content of others, whatever they are called."""

import gzip
import tarfile
import zipfile

import pytest
import torch

from fedstage.storage.contents import content_of
from fedstage.storage.provenance import content_digest
from fedstage.storage.tensors import save_tensors


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.safetensors"
    save_tensors(path, {"weight": torch.arange(1000.0)})
    return path


def test_a_copy_has_the_digest_of_its_original_under_any_name_and_in_gzip(model, tmp_path):
    text, digest = model.read_bytes(), content_digest(model)
    copies = {
        "model.bak": text,
        ".model.safetensors.here.1.tmp": text,
        "cut.tmp": text[:-9],
        "model.gz": gzip.compress(text),
        "cut.gz": gzip.compress(text)[:-9],
        "two.gz": gzip.compress(text[:500]) + gzip.compress(text[500:]),
    }
    for name, content in copies.items():
        (tmp_path / name).write_bytes(content)
        found = content_of(tmp_path / name)
        assert digest in found.digests, name
        assert found.whole == (name != "cut.gz"), name
    table = tmp_path / "table.csv"
    table.write_text("a,b\n1,2\n")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(table.read_bytes()))
    assert content_digest(table) in content_of(tmp_path / "t.csv.gz").digests
    assert digest not in content_of(table).digests


def test_what_is_not_looked_into_is_known(model, tmp_path):
    with zipfile.ZipFile(tmp_path / "a", "w") as packed:
        packed.write(model)
    with tarfile.open(tmp_path / "b", "w") as packed:
        packed.add(model, "model")
    (tmp_path / "c").write_bytes(gzip.compress((tmp_path / "b").read_bytes()))
    (tmp_path / "d").write_bytes(gzip.compress(gzip.compress(b"text")))
    assert not any(content_of(tmp_path / name).whole for name in "abcd")
    (tmp_path / "e").touch()
    assert content_of(tmp_path / "e").whole
