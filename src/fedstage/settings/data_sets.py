"""What data sets have in common: their samples, their files, and which part of them is used."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from fedstage.settings.base import Augmentation, Choice, Count, Positive, Seed
from fedstage.settings.sizes import Parts
from fedstage.settings.traits import Lacks, Trait


@dataclass(frozen=True)
class Known:
    """What the settings of a data set say of it before it is read; None where they do not."""

    shape: tuple[int, ...] | None = None  #: of a sample
    classes: int | None = None
    parts: Parts | None = None


class DataSet(Choice):
    """A data set of `samples` that are images, features, bags or tokens.

    `has_own_test`: the test samples also exist as each client would prepare them. `in_folder`: the
    set is read from the data folder. `raw`: the parts of it that the loader reads, as patterns
    below the data folder, by default all of `folder`; {braces} stand for the value of a setting,
    and the first pattern that matches any files counts. Their content determines the data set
    (`fedstage.storage.raw_files`); files that the loader verifies by checksums need not be named.
    `centres`: how many natural clients the set has by definition.
    """

    room: ClassVar[str] = "data.datasets"
    lacks: ClassVar[Lacks] = {
        "no are_images": ("whose samples are {0.samples}", Trait.IMAGES),
        "no server_validation": ("", Trait.VALIDATION),
    }
    samples: ClassVar[str] = "images"
    has_own_test: ClassVar[bool] = False
    in_folder: ClassVar[bool] = True
    raw: ClassVar[Mapping[str, tuple[str, ...]]] = {"files": ("{folder}/**/*",)}
    centres: ClassVar[int | None] = None

    @property
    def are_images(self) -> bool:
        """Whether the samples are images."""
        return self.samples == "images"

    @property
    def holds_out(self) -> bool:
        """Whether samples are set aside as public ones."""
        share: float = getattr(self, "held_out", 0)
        return share > 0

    @property
    def known(self) -> Known:
        """What is known without the data."""
        return Known()

    @property
    def has_clients(self) -> bool:
        """Whether it is known whose each sample is, as the natural partition needs."""
        return self.centres is not None or getattr(self, "client_column", None) is not None


class ImageSet(DataSet):
    """A data set of images, some of which may be held out as public ones."""

    uses: ClassVar[Mapping[str, str]] = {"held_out_augmentation": "training.public_images"}
    held_out_augmentation: Augmentation = "none"
    """Changes the held-out images once and for all, by a draw with `split_seed`, before a teacher
    or a student sees them: the public data with a transformation of its own of Fed-ET (Cho et al.
    2022).
    """
    split_seed: Seed = 0
    """Seed by which the samples are divided."""


class Sized(DataSet):
    """How much of a data set is used, and which training samples clients do not have."""

    division: Annotated[tuple[Positive, Count, Positive], Field(strict=False)] | None = None
    """Divides all samples, official training and test samples together, into shares for training,
    held out and for testing, such as [7, 1, 2] (Fed-ET, Appendix C). The other keys then count the
    samples of these parts.
    """
    train_size: Positive | None = None
    """Keep so many training samples of a permutation drawn with `split_seed`."""
    train_fraction: Annotated[float, Field(gt=0, le=1)] | None = None
    """Keep this share of the training samples."""
    test_size: Positive | None = None
    """Keep so many test samples of a permutation drawn with `split_seed`."""
    held_out: Count = 0
    """Training samples that become an unlabelled public set."""
    server_validation: Count = 0
    """Training samples that become the server's labelled set."""
    split_seed: Seed = 0
    """Seed by which the samples are divided."""

    @property
    def holds_out(self) -> bool:
        """Whether samples are set aside as public ones."""
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
