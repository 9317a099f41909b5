"""Data sets, and what their samples are."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from fedstage.settings.base import BY_NAME, IN_SHORT, Count, Positive, Settings


class Digits(Settings):
    """Handwritten digits of scikit-learn: 1,797 grey images of 8x8 pixels, 10 classes.

    `server_validation` labelled training samples are the server's own (`Server.early_stopping`,
    `Server.drop_worst`): no client trains on them, and nothing is scored on them.
    """

    name: Literal["digits"]
    test: Positive = 360
    held_out: Count = 360
    server_validation: Count = 0
    split_seed: int = 0


class Sized(Settings):
    """How much of a data set is used, and what of its training samples clients do not have.

    `train_size` and `test_size` keep the first samples of a permutation drawn with `split_seed`,
    `train_fraction` that share of what may be trained on; `held_out` samples of the training set
    become an unlabelled public set, `server_validation` others a labelled set of the server's own.
    """

    train_size: Positive | None = None
    train_fraction: Annotated[float, Field(gt=0, le=1)] | None = None
    test_size: Positive | None = None
    held_out: Count = 0
    server_validation: Count = 0
    split_seed: int = 0

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if self.train_size is not None and self.train_fraction is not None:
            raise ValueError("train_size and train_fraction: give one of them")
        return self


class TorchvisionData(Sized):
    """A data set that torchvision reads, checksums included.

    `extra` adds SVHN's 531,131 further training images to its 73,257.
    """

    name: Literal["cifar10", "cifar100", "svhn"]
    extra: bool = False

    @model_validator(mode="after")
    def _extra_of_svhn(self) -> Self:
        if self.extra and self.name != "svhn":
            raise ValueError(f"extra = true: only for svhn, {self.name} has no such images")
        return self


class ParquetData(Sized):
    """Images in the Parquet layout of the Hugging Face hub, in `folder` below the data folder.

    Files are `train*.parquet` and `test*.parquet` with a column `img` or `image` of encoded images
    and an integer column `label`. `client_column` names a column for the natural partition.
    """

    name: Literal["parquet"]
    folder: str
    label: str = "label"
    client_column: str | None = None
    image_size: Positive | None = None


class HeartDisease(Settings):
    """Fed-Heart-Disease: the four centres of the UCI Heart Disease files, 13 features a patient.

    Prepared and split as FLamby does (Ogier du Terrail et al. 2022). The centres are the natural
    partition. A centre's training rows are standardised by their own mean and deviation, test rows
    by those of all training rows; with the role ``test_own`` by those of their centre, too.
    """

    name: Literal["heart_disease"]
    folder: str = "heart_disease"
    held_out: ClassVar[int] = 0
    server_validation: ClassVar[int] = 0


class Isic2019(Sized):
    """Fed-ISIC2019 as FLamby has preprocessed it: 23,247 pictures of skin, 8 classes, 6 centres.

    `folder` below the data folder holds the pictures and FLamby's split; the middle `crop` x `crop`
    pixels of each are used. The centres are the natural partition.
    """

    name: Literal["isic2019"]
    folder: str = "fed_isic2019"
    crop: Positive = 200


class Camelyon16(Settings):
    """Fed-Camelyon16 as FLamby has preprocessed it: slides as bags of tiles, 2 classes, 2 centres.

    `folder` below the data folder holds the features of the tiles and FLamby's table of slides. Of
    a slide with more than `max_tiles` tiles so many are drawn, always the same. The centres are the
    natural partition.
    """

    name: Literal["camelyon16"]
    folder: str = "fed_camelyon16"
    max_tiles: Positive = 10_000
    held_out: ClassVar[int] = 0
    server_validation: ClassVar[int] = 0


class AgNews(Sized):
    """AG News as published, texts of 4 classes, in `folder` below the data folder.

    `length` tokens of a text are kept. `vocabulary` is a file of WordPieces below the data folder,
    one a line; without one `vocabulary_size` pieces are taken from the texts that are trained on.
    """

    name: Literal["ag_news"]
    folder: str = "ag_news"
    length: Annotated[int, Field(ge=3)] = 128
    vocabulary: str | None = None
    vocabulary_size: Annotated[int, Field(ge=5)] = 30_522


Data = Annotated[
    Digits | TorchvisionData | ParquetData | HeartDisease | Isic2019 | Camelyon16 | AgNews,
    BY_NAME,
    IN_SHORT,
]

#: What the samples of a data set are, where they are no images.
KINDS_OF_SAMPLES = {"heart_disease": "features", "camelyon16": "bags", "ag_news": "tokens"}

#: Data sets whose test samples each client may prepare in its own way.
WITH_OWN_TEST = ("heart_disease",)


class HeldOut(Settings):
    """The part of the training data that `held_out` set aside, without its labels."""

    name: Literal["held_out"]


#: Public data: the held-out part, or the training images of another data set.
Public = Annotated[HeldOut | Digits | TorchvisionData | ParquetData | Isic2019, BY_NAME, IN_SHORT]


def samples_of(data: Data) -> str:
    """Return what the samples of a data set are: ``images``, or another kind."""
    return KINDS_OF_SAMPLES.get(data.name, "images")
