"""Traces, in the files of a recipe, of a client that an aggregator has forgotten.

A natural client is a person or an institution. Every recipe on the same data set, with any seed,
may have used its samples, also as held-out samples or as the server's. A client of another
partition is only a share of samples that this partition, of one seed, has dealt out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fedstage.plan.data_files import (
    AnyRecipe,
    Division,
    clients_table,
    data_file,
    division_of,
    label_histogram,
    participation_table,
)
from fedstage.plan.one_shot_sharing import learns_from_moments, trained_on
from fedstage.settings.data import Data
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.public import CoreSamples, Generated, HeldOut
from fedstage.settings.recipes import LocalRecipe, Recipe
from fedstage.settings.server import needs_validation
from fedstage.settings.teaching import teaching_of

#: Parts of a data set that may have samples of a natural client, and roles of its own.
_PARTS = ("train", "test", "test_own", "held_out", "server_validation", "info")
_IMAGES = ("aggregator", "validation", *_PARTS[1:-1])
_WEIGHTED = "scores weighted by its label counts"

#: What a recipe has of a client: the client itself, or its samples in other shares or as public.
Has = Literal["client", "samples", "public"]


#: What a file, folder or pattern below the working folder contains of a client, and its path.
Trace = tuple[str, str]


@dataclass(frozen=True)
class Forgotten:
    """A client, by its number in a partition."""

    client: int
    division: Division

    @property
    def natural(self) -> bool:
        """Whether the data set itself defines which samples are its own."""
        return self.division.partition.name == "natural"

    def has(self, recipe: AnyRecipe) -> Has | None:
        """Return what a recipe has of the client, None if nothing."""
        own, data = division_of(recipe), self.division.data
        if _without_roles(own) == _without_roles(self.division):
            return "client"
        if not self.natural:
            return None
        if _same_files(own.data, data):
            same = own.data == data and own.partition == self.division.partition
            return "client" if same else "samples"
        public = public_data(recipe)
        return "public" if public is not None and _same_files(public, data) else None

    def in_data(self, data: Data) -> Iterator[Trace]:
        """Yield the files of a data set that have samples of the client."""
        if data == self.division.data and not self.natural:
            yield "its samples", data_file(data, "train")
        elif self.natural and _same_files(data, self.division.data):
            for part in _PARTS:
                contains = "its name, and its share of means" if part == "info" else "its samples"
                also = "" if part in ("train", "info") else ", if any are among these"
                yield f"{contains}{also}", data_file(data, part)

    def in_folder(self, folder: str, recipe: AnyRecipe) -> Iterator[Trace]:
        """Yield the traces of the client in files of a recipe's folder, and of its partition."""
        has = self.has(recipe)
        if has in ("client", "samples"):
            yield from _of_partition(recipe)
        if has is not None:
            for contains, below in _of_folder(self, has, folder, recipe):
                yield contains, f"{folder}{below}"


def public_data(recipe: AnyRecipe) -> Data | None:
    """Return the data set that a recipe reads in addition to the data of its clients, if any."""
    if isinstance(recipe, LocalRecipe) or isinstance(
        recipe.public, HeldOut | CoreSamples | Generated
    ):
        return None
    return recipe.public


def _of_partition(recipe: AnyRecipe) -> Iterator[Trace]:
    yield "which samples are its own", clients_table(recipe)
    yield "its label counts", label_histogram(recipe)
    if isinstance(recipe, Recipe) and recipe.participation == "by_samples":
        yield "drawn by its number of samples", participation_table(recipe, 1).job.folder


def _of_folder(gone: Forgotten, has: Has, folder: str, recipe: AnyRecipe) -> Iterator[Trace]:
    """Yield what a recipe's folder contains of a client, with the names of files below it."""
    kind, own = folder.split("/")[1], f"client_{gone.client}"
    if has == "samples":
        yield "learnt from its samples in other shares", ""
    elif has == "public":
        yield "learnt from its samples as public ones", ""
    elif isinstance(recipe, LocalRecipe):
        yield from _of_local_models(gone, own, recipe)
    elif kind in ("moments", "generators"):
        what = "moments of its features" if kind == "moments" else "its generator"
        yield what, f"/{own}.safetensors"
    elif isinstance(recipe, Recipe):
        yield "rounds that it may be in", ""
    elif kind in ("generated", "synthesised"):
        if gone.client not in recipe.forget:
            yield "generated with what it sent", ""
    elif gone.client not in recipe.forget:
        yield "learnt from its model and samples", ""
    elif gone.natural and _learns_from_set_aside(recipe):
        yield "learnt from samples set aside, also its own", ""
    else:
        yield _WEIGHTED, "/metrics"


def _of_local_models(gone: Forgotten, own: str, recipe: LocalRecipe) -> Iterator[Trace]:
    """Yield the traces of a client in models that are trained without federation."""
    yield _WEIGHTED, "/metrics"
    if who := trained_on(recipe):
        yield "learnt from its samples", f"/{who}.safetensors"
        return
    yield "its model", f"/{own}.safetensors"
    yield "its quantised model", f"/quantised/*/{own}.safetensors"
    yield "what its model says", f"/logits/*/{own}-*.safetensors"  # prose: ok
    fractions = {"aggregator": recipe.aggregator_fraction, "validation": recipe.validation}
    roles = [role for role, fraction in fractions.items() if fraction]
    for images in _IMAGES if gone.natural else roles:
        files = f"/logits/*/client_*-{images}.safetensors"
        yield "what models say about its samples", files  # prose: ok


def _learns_from_set_aside(recipe: OneShotRecipe) -> bool:
    """Whether a recipe learns from held-out samples, or from the server's."""
    if recipe.distillation is None or learns_from_moments(recipe):
        return False
    held_out = isinstance(recipe.public, HeldOut | CoreSamples)
    return held_out or needs_validation(teaching_of(recipe).server)


def _same_files(data: Data, other: Data) -> bool:
    """Whether two data sets are read from the same files, perhaps from different parts of them."""
    names = ((each.name, getattr(each, "folder", None)) for each in (data, other))
    return len(set(names)) == 1


def _without_roles(division: Division) -> Division:
    return division.model_copy(update={"validation": 0.0, "aggregator_fraction": 0.0})
