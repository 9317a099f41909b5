"""What data sets have in common: their samples, their files, and which part of them is used."""

from collections.abc import Iterator, Mapping
from os.path import normpath
from pathlib import PurePath
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedstage.settings.base import (
    Augmentation,
    Choice,
    Count,
    Functions,
    Positive,
    Seed,
    Settings,
    Share,
)


class OfFiles(Choice):
    """A choice that may be read from files in the data folder.

    `in_folder`: whether it is. `raw`: the files that are read, as patterns below the data folder
    for each part. {Braces} are replaced by the value of a setting, and the first pattern that
    matches any files counts. The content of these files determines what is made of them
    (`fedstage.storage.raw_files`); files that the loader verifies by checksums need not be named.
    `suffixes`: the suffixes, in lower case, of files that count where the pattern is for all files
    at any depth; by default all.
    """

    in_folder: ClassVar[bool] = True
    raw: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    suffixes: ClassVar[tuple[str, ...]] = ()


class DataSet(OfFiles):
    """A data set of `samples` that are images, features, bags or tokens.

    `has_own_test`: whether the test samples also exist as each client would prepare them.
    `centres`: the number of natural clients, if the set has a fixed one.
    `clients_hint`: what to do if there are no clients for the natural partition. By default, the
    set is read from all files in `folder`.
    """

    room: ClassVar[str] = "data.datasets"
    functions: ClassVar[Functions] = {"load": ("settings", "folder")}
    samples: ClassVar[str] = "images"
    has_own_test: ClassVar[bool] = False
    raw: ClassVar[Mapping[str, tuple[str, ...]]] = {"files": ("{folder}/**/*",)}
    centres: ClassVar[int | None] = None
    clients_hint: ClassVar[str] = "choose another partition"

    @property
    def are_images(self) -> bool:
        """Whether the samples are images."""
        return self.samples == "images"

    @property
    def holds_out(self) -> bool:
        """Whether samples are set aside as public samples."""
        share: float = getattr(self, "held_out", 0)
        return share > 0

    @property
    def has_clients(self) -> bool:
        """Whether the natural partition knows the client of each sample; not asked of plugins."""
        return self.centres is not None or getattr(self, "client_column", None) is not None


class ImageSet(DataSet):
    """A data set of images, some of which may be held out as public images."""

    uses: ClassVar[Mapping[str, str]] = {"held_out_augmentation": "training.public_images"}
    held_out_augmentation: Augmentation = "none"
    """Random change of the held-out images, drawn once with `split_seed` before a teacher or a
    student sees them. Fed-ET transforms public data in this way (Cho et al. 2022).
    """
    split_seed: Seed = 0
    """Seed for the division of samples."""


class Sized(DataSet):
    """How much of a data set is used, and which training samples clients do not get."""

    division: Annotated[tuple[Positive, Count, Positive], Field(strict=False)] | None = None
    """Shares for training, holding out and testing into which all official training and test
    samples are divided, such as [7, 1, 2] (Fed-ET, Appendix C). The other keys then count the
    samples of these parts. By default the official division is kept.
    """
    train_size: Positive | None = None
    """Number of training samples to keep, from a permutation drawn with `split_seed`; by default
    all.
    """
    train_fraction: Share | None = None
    """Share of the training samples to keep; by default all."""
    test_size: Positive | None = None
    """Number of test samples to keep, from a permutation drawn with `split_seed`; by default all.
    """
    held_out: Count = 0
    """Number of training samples that become an unlabelled public set."""
    server_validation: Count = 0
    """Number of training samples that become the server's labelled set."""
    split_seed: Seed = 0
    """Seed for the division of samples."""

    @property
    def holds_out(self) -> bool:
        """Whether samples are set aside as public samples."""
        return self.held_out > 0 if self.division is None else self.division[1] > 0

    def _faults(self) -> Iterator[str]:
        yield from super()._faults()
        if self.train_size is not None and self.train_fraction is not None:
            yield "train_size and train_fraction: give one of them"
        if self.division is not None and self.held_out:
            yield (
                f"held_out = {self.held_out}: not with division, whose second share is held out; "
                "leave it out"
            )


class Drawn(Sized):
    """Samples from which those for testing may be drawn."""

    test_fraction: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Share of all samples that is drawn for testing if no test samples are set apart. Test samples
    are drawn with `split_seed`, as evenly over clients and labels as possible.
    """

    def _faults(self) -> Iterator[str]:
        yield from super()._faults()
        if self.test_fraction is not None and self.division is not None:
            yield "test_fraction and division: give one of them"


class OwnSamples(Drawn):
    """The user's own samples in a folder; test samples may be drawn from them."""

    folder: str
    """Folder of the files, below the data folder."""


#: Hint on how the samples of a table get clients.
CLIENT_COLUMN = "name one in data.client_column"

#: Names of columns.
Columns = Annotated[tuple[str, ...], Field(strict=False)]


class OwnerColumns(Settings):
    """The columns with the class and the client of each sample."""

    label: str = "label"
    """Column of classes: integers, texts or booleans."""
    client_column: str | None = None
    """Column of clients for the natural partition: integers, texts or booleans; by default none."""
    group_column: str | None = None
    """Column of groups, such as patients, that `test_fraction` keeps together; by default none."""


class TableColumns(OwnerColumns):
    """The roles of the columns of a table.

    Numbers are standardised by the mean and deviation of the clients' training rows. Texts,
    booleans and the columns of `categorical` are one-hot coded with the categories of these rows.
    """

    features: Columns = ()
    """Columns of features; by default all others."""
    drop: Columns = ()
    """Columns that are not features."""
    categorical: Columns = ()
    """Columns of numbers that are categories."""
    missing: Literal["refuse", "mean"] = "refuse"
    """Whether missing values are refused, or become the mean in columns of numbers and a category
    of their own in other columns.
    """

    def _faults(self) -> Iterator[str]:
        yield from super()._faults()
        if self.features and self.drop:
            yield "features and drop: give one of them"
        for column in self.features:
            if column in (self.label, self.client_column, self.group_column):
                yield f"features: {column!r}: must not be the column of labels, clients or groups"


class Encoder(OfFiles):
    """A pre-trained network that turns samples into features and is not trained.

    `encodes`: the samples that it takes. Of a plugin's encoder, `raw` may name the files that its
    `network` reads.
    """

    room: ClassVar[str] = "models.encoders"
    functions: ClassVar[Functions] = {"network": ("settings", "folder")}
    encodes: ClassVar[tuple[str, ...]] = ("images",)


class LibraryEncoder(Encoder):
    """An encoder whose architecture is a library's."""

    module: ClassVar[str] = "libraries"
    raw: ClassVar[Mapping[str, tuple[str, ...]]] = {"weights": ("{weights}",)}
    architecture: str
    """Its name in the library."""
    weights: str
    """File of weights below the data folder, or `published`: the library downloads and keeps them.
    """

    @property
    def in_folder(self) -> bool:  # type: ignore[override]
        """Whether the weights are in the data folder."""
        return self.weights != "published"


class TimmEncoder(LibraryEncoder):
    """An encoder of images of timm; needs the extra `vision`."""

    package: ClassVar[str | None] = "timm"
    name: Literal["timm"]


class TorchvisionEncoder(LibraryEncoder):
    """A classifier of torchvision without its last linear layer."""

    name: Literal["torchvision"]


class TransformersEncoder(LibraryEncoder):
    """An encoder of texts of transformers; needs the extra `text`.

    `weights` is a folder with the files of the model on the hub. Tokens are the data's, whose
    `vocabulary` must be the encoder's.
    """

    package: ClassVar[str | None] = "transformers"
    encodes: ClassVar[tuple[str, ...]] = ("tokens",)
    raw: ClassVar[Mapping[str, tuple[str, ...]]] = {"weights": ("{weights}/**/*",)}
    name: Literal["transformers"]
    pooling: Literal["mean", "first"] = "mean"
    """What represents a text: the mean over its tokens, as in sentence encoders, or its first one.
    """


def same_source(one: DataSet, other: DataSet) -> bool:
    """Whether two data sets may have samples in common: one name, or folders inside one another.

    For features, the encoded samples count.
    """
    one, other = (getattr(data, "of", data) for data in (one, other))
    folders = [data.folder for data in (one, other) if hasattr(data, "folder")]
    if len(folders) < 2:
        return bool(one.name == other.name)
    first, second = (PurePath(normpath(folder)) for folder in folders)
    return first.is_relative_to(second) or second.is_relative_to(first)
