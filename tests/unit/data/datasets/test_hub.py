"""Data sets of the Hugging Face hub, in the cache of the package `datasets`."""

import io

import pytest
import torch
from PIL import Image

from fedstage.data.datasets import load
from fedstage.errors import FedstageError
from fedstage.settings.data import DataOption
from fedstage.settings.validation import validate

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def read(name, **keys):
    given = {"dataset": "me/tiny", "revision": COMMIT, **keys}
    return load(validate(DataOption, {"data": {name: given}}, "").data, None)


def encoded(level):
    file = io.BytesIO()
    Image.new("RGB", (4, 4), (level, 0, 0)).save(file, "PNG")
    return {"bytes": file.getvalue(), "path": None}


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """Return a function that puts splits into the cache, as they are after a download."""
    reason = "needs the extra hub"
    datasets = pytest.importorskip("datasets", reason=reason)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)

    def put(features, commit=COMMIT, subset="default", **splits):
        from datasets.packaged_modules.parquet.parquet import Parquet

        for split, rows in splits.items():
            columns = {name: [row[name] for row in rows] for name in features}
            made = datasets.Dataset.from_dict(columns, features=datasets.Features(features))
            made.to_parquet(tmp_path / f"{split}.parquet")
        files = {split: [str(tmp_path / f"{split}.parquet")] for split in splits}
        known = {"dataset_name": "tiny", "hash": commit}
        Parquet(cache_dir=str(tmp_path / "cache"), data_files=files, **known).download_and_prepare()
        (made,) = (tmp_path / "cache/tiny").glob("default*")
        (tmp_path / "cache/me___tiny").mkdir(exist_ok=True)
        made.rename(tmp_path / f"cache/me___tiny/{subset}")

    return datasets, put


def test_images_have_the_columns_of_the_features(cached):
    datasets, put = cached
    kinds = {"photo": datasets.Image(), "kind": datasets.ClassLabel(names=["cat", "ant"]),
             "by": datasets.Value("string")}  # fmt: skip
    rows = [{"photo": encoded(n), "kind": n % 2, "by": "uv"[n // 3]} for n in range(6)]
    put(kinds, train=rows, validation=rows[:2], test=rows[:3], unsupervised=rows)
    data = read("hub", client_column="by")
    assert (data.class_names, data.client_names) == (("cat", "ant"), ("u", "v"))
    assert data.train.images[:, 0, 0, 0].tolist() == list(range(6))
    assert (data.train.labels.tolist(), len(data.test.labels)) == ([0, 1] * 3, 3)


def test_texts_have_the_columns_of_the_features(cached, caplog):
    datasets, put = cached
    kinds = {"text": datasets.Value("string"), "label": datasets.Value("int64")}
    put(kinds, train=[{"text": f"word {n}", "label": n % 2} for n in range(8)])
    with pytest.raises(FedstageError, match=r"none for testing; set data\.test_fraction"):
        read("hub_texts")
    data = read("hub_texts", test_fraction=0.25, length=6)
    assert (data.train.images.dtype, data.train.images.shape) == (torch.int32, (6, 6))


def test_another_revision_or_data_set_is_not_taken(cached):
    datasets, put = cached
    kinds = {"image": datasets.Image(), "label": datasets.ClassLabel(names=["a", "b"])}
    put(kinds, "f" * 40, train=[{"image": encoded(n), "label": n} for n in range(2)])
    with pytest.raises(FedstageError, match=f"revision {COMMIT} is not in the cache"):
        read("hub")
    for subset in ("de", "fr"):
        put(kinds, subset=subset, train=[{"image": encoded(n), "label": n} for n in range(2)])
    with pytest.raises(FedstageError, match=r"has subsets de, fr; name one in data\.subset"):
        read("hub", test_fraction=0.5)
    assert len(read("hub", test_fraction=0.5, subset="de").train.labels) == 1
    with pytest.raises(FedstageError, match=r"data = hub: me/other: .*me/other") as caught:
        read("hub", dataset="me/other")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("key", "count"), [("label", 2), ("image", 0)])
def test_a_column_that_is_not_certain_is_named(cached, key, count):
    datasets, put = cached
    kinds = {"a": datasets.ClassLabel(names=["a"]), "b": datasets.ClassLabel(names=["a"])}
    put(kinds, train=[{"a": 0, "b": 0}] * 2)
    chosen = {} if key == "label" else {"label": "a"}
    with pytest.raises(FedstageError, match=rf"has {count} columns .* name one in data\.{key}"):
        read("hub", test_fraction=0.5, **chosen)


def test_without_the_package_a_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(FedstageError, match="install the extra hub: uv sync --extra hub"):
        read("hub")
