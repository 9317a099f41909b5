"""Data sets of the Hugging Face hub, by the package `datasets`: from its cache, or downloaded."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fedstage.data.datasets.columns import labelled_rows, text_column
from fedstage.data.datasets.images import Dataset
from fedstage.data.datasets.own_images import images_of, with_stated_names
from fedstage.data.datasets.texts import as_tokens
from fedstage.data.excerpts import listed
from fedstage.data.layouts import SPLITS
from fedstage.errors import FedstageError, fault_of, how_to_install
from fedstage.settings.data import HubImages, HubTexts
from fedstage.storage.raw_files import default_folder

_LOGGER = logging.getLogger(__name__)


def load(settings: HubImages | HubTexts, folder: Path | None) -> Dataset:
    """Read the splits of a data set; a vocabulary of texts is read from the data folder.

    Raises
    ------
    FedstageError
        If the package is not installed; if there is no such data set, revision, split or column,
        or it can be neither found in the cache nor downloaded; or as for files of Parquet.
    """
    with fault_of(f"data = {settings.name}: {settings.dataset}"):
        splits = _loaded(settings)
        train, test = _chosen(settings, splits)
        features = splits[train[0]].features
        if settings.label not in features:
            found = _only("label", features, "ClassLabel")
            settings = settings.model_copy(update={"label": found})
        if isinstance(settings, HubImages):
            samples = settings.image or _only("image", features, "Image")
        else:
            samples = settings.text or _only("text", features, "Value", "string")
    files = [(Path(settings.dataset, name), _table(splits[name])) for name in train + test]
    if isinstance(settings, HubImages):
        tables = dict(files)
        return images_of(settings, len(train), files, lambda path: tables[path].column(samples))
    rows = with_stated_names(settings, files, labelled_rows(settings, len(train), files))
    return as_tokens(settings, default_folder(), rows, text_column("data.text", samples, files))


def _loaded(settings: HubImages | HubTexts) -> Mapping[str, Any]:
    """Return the data set's splits by name."""
    try:
        import datasets  # slow to import
    except ModuleNotFoundError:
        raise FedstageError(f"needs the package datasets; {how_to_install('hub')}") from None
    datasets.disable_progress_bars()
    try:
        splits = _cached(settings) or datasets.load_dataset(
            settings.dataset, settings.subset, revision=settings.revision
        )
    except (datasets.exceptions.DatasetsError, OSError, ValueError, RuntimeError) as error:
        raise FedstageError(str(error).partition("\n")[0]) from None
    # Without a network, `datasets` takes another revision from its cache.
    files = [Path(file["filename"]) for split in splits.values() for file in split.cache_files]
    if other := next((path for path in files if settings.revision not in path.parts), None):
        fault = "is not in the cache, and cannot be downloaded"
        raise FedstageError(f"revision {settings.revision} {fault}; there is {other.parent}")
    found: Mapping[str, Any] = splits
    return found


def _cached(settings: HubImages | HubTexts) -> Mapping[str, Any] | None:
    """Return the splits in the cache, for which `datasets` would ask the network."""
    from datasets import config
    from datasets.naming import camelcase_to_snakecase
    from datasets.packaged_modules.cache.cache import Cache

    *owner, name = settings.dataset.split("/")
    folder = "___".join([*owner, camelcase_to_snakecase(name)])
    subset = settings.subset or "*"
    found = sorted(Path(config.HF_DATASETS_CACHE, folder).glob(f"{subset}/*/{settings.revision}"))
    if len(found) > 1:
        subsets = listed([path.parts[-3] for path in found])
        raise FedstageError(f"has subsets {subsets}; name one in data.subset")
    if not found:
        return None
    subset, version, commit = found[0].parts[-3:]
    known = {"repo_id": settings.dataset, "dataset_name": name}
    made = Cache(config_name=subset, version=version, hash=commit, **known)
    splits: Mapping[str, Any] = made.as_dataset()
    return splits


def _chosen(
    settings: HubImages | HubTexts, splits: Mapping[str, Any]
) -> tuple[list[str], list[str]]:
    """Return the splits for training and for testing, and say which are not read."""
    by_part: dict[str | None, list[str]] = {"train": [], "test": [], "validation": []}
    for name in splits:
        by_part.setdefault(SPLITS.get(name.lower()), []).append(name)
    train, test = by_part["train"], by_part["test"] or by_part["validation"]
    if settings.test_fraction is not None:
        test = []
    drawn = settings.test_fraction or settings.division
    if not train or not (test or drawn):
        hint = "set data.test_fraction" if train else "choose a data.subset with one"
        lacking = f"none for {'testing' if train else 'training'}; {hint}"
        raise FedstageError(f"has splits {', '.join(splits)}, {lacking}")
    if left := sorted({*splits} - {*train, *test}):
        _LOGGER.warning("%s: splits that are not read: %s", settings.dataset, listed(left))
    return train, test


def _only(key: str, features: Mapping[str, Any], kind: str, type_: str = "") -> str:
    """Return the only column of a kind of the features of `datasets`."""
    found = [
        name for name, feature in features.items()
        if type(feature).__name__ == kind and type_ in ("", feature.dtype)
    ]  # fmt: skip
    if len(found) != 1:
        has = f"has {len(found)} columns of kind {type_ or kind}, of {', '.join(features)}"
        raise FedstageError(f"{has}; name one in data.{key}")
    return found[0]


def _table(split: Any) -> pa.Table:
    """Return a split as Arrow's table, with the bytes of images and the names of classes."""
    from datasets.table import embed_table_storage

    table = split.data.table.replace_schema_metadata(split.features.arrow_schema.metadata)
    images = [table.column(name) for name, one in split.features.items() if hasattr(one, "decode")]
    outside = any(pc.struct_field(column, "bytes").null_count for column in images)
    return embed_table_storage(table) if outside else table
