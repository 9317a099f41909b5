"""Data sets and the kinds of their samples.

One file because all alternatives can be read next to one another.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from fedstage.settings.base import (
    COMMIT,
    ByName,
    Count,
    Fraction,
    Positive,
    Seed,
    Settings,
    Width,
)
from fedstage.settings.data_sets import (
    CLIENT_COLUMN,
    DataSet,
    Drawn,
    ImageSet,
    OwnerColumns,
    OwnSamples,
    Sized,
    TableColumns,
    TimmEncoder,
    TorchvisionEncoder,
    TransformersEncoder,
)
from fedstage.settings.numerics import Numerics

#: Number of tokens of a text: its two marks and at least one piece.
Length = Annotated[int, Field(ge=3, le=100_000)]
#: Number of pieces in a vocabulary, including the special tokens.
VocabularySize = Annotated[int, Field(ge=5, le=10**9)]


class Digits(ImageSet):
    """Handwritten digits of scikit-learn: 1,797 grey images of 8x8 pixels in 10 classes."""

    module: ClassVar[str] = "published"
    in_folder: ClassVar[bool] = False
    name: Literal["digits"]
    test: Positive = 360
    """Number of test images."""
    held_out: Count = 360
    """Number of training images that become the unlabelled public set."""
    server_validation: Count = 0
    """Number of labelled training images that are the server's own (`Server.early_stopping`,
    `Server.drop_worst`). They neither train clients nor score models.
    """


class TorchvisionData(Sized, ImageSet):
    """CIFAR-10, CIFAR-100 or SVHN, read and verified with checksums by torchvision."""

    module: ClassVar[str] = "published"
    raw: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    name: Literal["cifar10", "cifar100", "svhn"]
    extra: bool = False
    """Whether to add SVHN's 531,131 extra training images to its 73,257."""

    def _faults(self) -> Iterator[str]:
        yield from super()._faults()
        if self.extra and self.name != "svhn":
            yield f"extra = true: only for svhn, {self.name} has no such images"


class Resized(ImageSet):
    """Images of any size, with three channels."""

    image_size: Annotated[int, Field(ge=1, le=4096)] | None = None
    """Height and width, in pixels, to which images are resized; by default they keep their size."""
    resampling: Literal["bilinear", "area"] = "bilinear"
    """How images are resized: by Pillow's bilinear filter, or by averaging the area that each new
    pixel covers.
    """


class ParquetData(OwnSamples, OwnerColumns, Resized):
    """Images in the Parquet layout of the Hugging Face hub.

    Files are `train*.parquet` and `test*.parquet` or `valid*.parquet`, with encoded images in
    column `img` or `image` and a column of labels.
    """

    module: ClassVar[str] = "own_images"
    suffixes: ClassVar[tuple[str, ...]] = (".parquet",)
    clients_hint: ClassVar[str] = CLIENT_COLUMN
    name: Literal["parquet"]


class ImageFolder(OwnSamples, Resized):
    """Images in folders named after their classes.

    Files are CLASS/NAME.png or, with `client_folders`, CLIENT/CLASS/NAME.png; other image formats
    are read, too. These folders may be in folders `train` and `test`. Otherwise a `test_fraction`
    of all images, by default 0.2, is for testing.
    """

    module: ClassVar[str] = "own_images"
    suffixes: ClassVar[tuple[str, ...]] = (
        ".png", ".jpg", ".jpeg", ".jfif", ".jpe", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm"
    )  # fmt: skip
    clients_hint: ClassVar[str] = "set data.client_folders = true, with folders CLIENT/CLASS"
    name: Literal["image_folder"]
    client_folders: bool = False
    """Whether the folders of classes are in folders of clients, which the natural partition
    follows.
    """

    @property
    def has_clients(self) -> bool:
        """Whether the folders name clients."""
        return self.client_folders


class OwnTensors(OwnSamples):
    """Tensors in `train.safetensors` and, as needed, `test.safetensors` and `public.safetensors`.

    They have `x`, the samples, and, except for public samples, `y`, the classes 0, 1, ... as int64
    [n]. Training samples may have `clients` 0, 1, ..., also int64 [n]. Without a file for testing,
    a `test_fraction` is drawn. With one of public samples, `held_out` is their number.
    """

    module: ClassVar[str] = "tensors"
    raw: ClassVar[Mapping[str, tuple[str, ...]]] = {"tensors": ("{folder}/*.safetensors",)}

    @property
    def has_clients(self) -> bool:
        """Whether there may be clients; if not, the stage `partition` refuses the natural one."""
        return True


class ImageTensors(OwnTensors, ImageSet):
    """Images as tensors, uint8 [n, C, H, W]."""

    name: Literal["image_tensors"]


class FeatureTensors(OwnTensors):
    """Features of any shape as tensors, float32 [n, ...], which models take as they are."""

    samples: ClassVar[str] = "features"
    name: Literal["feature_tensors"]


class OwnTables(OwnSamples, OwnerColumns):
    """Tables in CSV or Parquet files, with one row per sample.

    Files are `train*` and `test*`, or in folders of these names: CSV or TSV with a header, Parquet,
    or JSON of LEAF.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".csv", ".tsv", ".parquet", ".json")
    clients_hint: ClassVar[str] = CLIENT_COLUMN


class Texts(DataSet):
    """Texts as tokens: the numbers of WordPieces in a vocabulary."""

    samples: ClassVar[str] = "tokens"
    length: Length = 128
    """Number of tokens of a text that are kept, from its start."""
    vocabulary: str | None = None
    """File of WordPieces below the data folder, with one piece per line; by default the vocabulary
    is built from the training texts.
    """
    vocabulary_size: VocabularySize = 30_522
    """Maximum number of pieces in the vocabulary, whether it is built from the training texts or
    read from a file.
    """


class TableData(OwnTables, TableColumns):
    """Tables of features, with one row per sample.

    The roles of the columns are described in `TableColumns`.
    """

    samples: ClassVar[str] = "features"
    name: Literal["table"]


class HeartDisease(DataSet):
    """Fed-Heart-Disease: patients of four centres (UCI Heart Disease), with 13 features each.

    The data are prepared and split as in FLamby (Ogier du Terrail et al. 2022). The centres are the
    natural partition. Each centre standardises its training rows by their own mean and deviation.
    Test rows are standardised by all training rows or, for the role ``test_own``, by the training
    rows of their centre.
    """

    module: ClassVar[str] = "flamby"
    samples: ClassVar[str] = "features"
    has_own_test: ClassVar[bool] = True
    raw: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    centres: ClassVar[int] = 4
    name: Literal["heart_disease"]
    folder: str = "heart_disease"
    """Folder of the files, below the data folder."""
    held_out: ClassVar[int] = 0
    server_validation: ClassVar[int] = 0


class Isic2019(Sized, ImageSet):
    """Fed-ISIC2019 as preprocessed by FLamby: 23,247 pictures of skin, 8 classes, 6 centres.

    The centres are the natural partition.
    """

    module: ClassVar[str] = "flamby"
    raw: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "table": ("{folder}/train_test_split",),
        "pictures": ("{folder}/ISIC_2019_Training_Input_preprocessed/*.jpg",),
    }
    centres: ClassVar[int] = 6
    name: Literal["isic2019"]
    folder: str = "fed_isic2019"
    """Folder of the pictures and of FLamby's split, below the data folder."""
    crop: Width = 200
    """Height and width, in pixels, of the middle part of each picture that is used."""


class Camelyon16(DataSet):
    """Fed-Camelyon16 as preprocessed by FLamby: slides as bags of tiles, 2 classes, 2 centres.

    The centres are the natural partition.
    """

    module: ClassVar[str] = "flamby"
    samples: ClassVar[str] = "bags"
    raw: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "table": ("{folder}/metadata.csv",),
        "slides": ("{folder}/*.npy",),
    }
    centres: ClassVar[int] = 2
    name: Literal["camelyon16"]
    folder: str = "fed_camelyon16"
    """Folder of the tiles' features and of FLamby's table of slides, below the data folder."""
    max_tiles: Positive = 10_000
    """Maximum number of tiles per slide; of larger slides, a fixed random draw of tiles is used."""
    held_out: ClassVar[int] = 0
    server_validation: ClassVar[int] = 0


class TextData(OwnTables, Texts):
    """Tables with a column of texts and a column of labels."""

    raw: ClassVar[Mapping[str, tuple[str, ...]]] = {**DataSet.raw, "vocabulary": ("{vocabulary}",)}
    name: Literal["texts"]
    text: str = "text"
    """Column of texts."""


class OfHub(Drawn, OwnerColumns):
    """A data set of the Hugging Face hub, by the package `datasets`: from its cache, or downloaded.

    The names of splits tell which are for training and testing; without one for testing, a
    validation split is, or a `test_fraction` is drawn. If there is no column `label`, the classes
    are in the only column of class labels.
    """

    module: ClassVar[str] = "hub"
    in_folder: ClassVar[bool] = False
    raw: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    package: ClassVar[str | None] = "datasets"
    clients_hint: ClassVar[str] = CLIENT_COLUMN
    dataset: str
    """Name on the hub, such as ``uoft-cs/cifar10``."""
    revision: Annotated[str, Field(pattern=COMMIT)]
    """Commit of the data set on the hub, which determines the samples."""
    subset: str | None = None
    """Subset, such as a language, where the data set has several."""


class HubImages(OfHub, Resized):
    """Images of the Hugging Face hub."""

    name: Literal["hub"]
    image: str | None = None
    """Column of images; by default the only one."""


class HubTexts(OfHub, Texts):
    """Texts of the Hugging Face hub as tokens."""

    name: Literal["hub_texts"]
    text: str | None = None
    """Column of texts; by default the only one."""


class AgNews(Sized, Texts):
    """AG News as published, or texts in the same format.

    The classes are the numbers that occur; line n of ``classes.txt`` contains the name of class n.
    """

    module: ClassVar[str] = "published_texts"
    raw: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "train": ("{folder}/train.csv",),
        "test": ("{folder}/test.csv",),
        # A part must have a file: without a file of names, one that counts anyway.
        "classes": ("{folder}/classes.txt", "{folder}/train.csv"),
        "vocabulary": ("{vocabulary}",),
    }
    name: Literal["ag_news"]
    folder: str = "ag_news"
    """Folder of the files, below the data folder."""


class Sent140(Texts):
    """Sentiment140 as published: tweets in 2 classes.

    Users are divided into disjoint groups: for `test`, for `held_out`, for `server_validation`, and
    the others, which are the natural partition. The division follows Fed-ET (Cho et al. 2022),
    which does not state `test`.
    """

    module: ClassVar[str] = "published_texts"
    raw: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "tweets": ("{folder}/training.1600000.processed.noemoticon.csv",),
        "vocabulary": ("{vocabulary}",),
    }
    name: Literal["sent140"]
    folder: str = "sent140"
    """Folder of the files, below the data folder."""
    min_samples: Count = 100
    """Number of tweets that a user must exceed to be used."""
    test: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """Share of users whose tweets are for testing."""
    held_out: Fraction = 0.2
    """Share of the other users whose tweets are the unlabelled public set."""
    server_validation: Fraction = 0.0
    """Share of the other users whose tweets are the server's labelled set."""
    split_seed: Seed = 0
    """Seed for the division of users."""
    length: Length = 256
    """Number of tokens of a text that are kept, from its start."""

    @property
    def has_clients(self) -> bool:
        """Whether the client of each sample is known: yes, its user."""
        return True

    def _faults(self) -> Iterator[str]:
        if self.held_out + self.server_validation >= 1:
            yield (
                f"held_out + server_validation = {self.held_out + self.server_validation:g}: "
                "must be below 1, or no user is left to train"
            )


Images = Digits | TorchvisionData | ParquetData | ImageFolder | HubImages
_OfTensors = ImageTensors | FeatureTensors
_OfTexts = TextData | HubTexts | AgNews | Sent140
_Read = Images | _OfTensors | TableData | _OfTexts | HeartDisease | Isic2019 | Camelyon16


def _of(name: str) -> Any:
    """Return a property of features that the encoded data set has."""
    return property(lambda features: getattr(features.of, name, 0))


class Features(DataSet):
    """Features of the samples of a data set by a frozen encoder, float32 [n, d]."""

    module: ClassVar[str] = "tensors"  # not read: a separate stage encodes the samples
    in_folder: ClassVar[bool] = False
    samples: ClassVar[str] = "features"
    has_own_test: ClassVar[bool] = _of("has_own_test")
    centres: ClassVar[int | None] = _of("centres")
    clients_hint: ClassVar[str] = _of("clients_hint")
    holds_out: ClassVar[bool] = _of("holds_out")
    has_clients: ClassVar[bool] = _of("has_clients")
    server_validation: ClassVar[int] = _of("server_validation")
    name: Literal["features"]
    of: ByName[_Read]
    """Data set whose samples are encoded, with its own settings."""
    encoder: ByName[TimmEncoder | TorchvisionEncoder | TransformersEncoder]
    """Encoder, which all clients and the server share."""
    image_size: Annotated[int, Field(ge=1, le=4096)] | None = None
    """Height and width to which images are resized bilinearly; by default they keep their size."""
    numerics: Numerics = Numerics()
    """How features are computed."""

    def _faults(self) -> Iterator[str]:
        of, encoder = self.of, self.encoder
        if of.samples not in encoder.encodes:
            yield (
                f"encoder = {encoder.name}: takes {' or '.join(encoder.encodes)}, and the samples "
                f"of {of.name} are {of.samples}"
            )
        if self.image_size and not of.are_images:
            yield f"image_size = {self.image_size}: only for images, not {of.samples}"
        if isinstance(of, Texts) and of.vocabulary is None:
            yield "of.vocabulary = null: must be the encoder's file of WordPieces"


Data = ByName[_Read | Features]


class DataOption(Settings):
    """The option of the stage `dataset`, under its key in the configuration, for messages."""

    data: Data


class HeldOut(Settings):
    """The part of the training data that `held_out` set aside, without its labels."""

    name: Literal["held_out"]


class CoreSamples(Settings):
    """The server's own labelled training samples: the `core` of a recipe."""

    name: Literal["core"]


class Generated(Settings):
    """The labelled images that the `generator` of a recipe makes."""

    name: Literal["generated"]


#: Public data: the held-out part, the server's own, what a generator makes, or the training images
#: of another data set.
Public = ByName[HeldOut | CoreSamples | Generated | Images | Isic2019]
