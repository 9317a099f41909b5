"""Differential privacy: how much a unit may change a sum, and the noise that hides it."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from fedstage.protocol.groups import (
    client_models,
    has_batch_norm,
    models_of,
)
from fedstage.protocol.privacy import delta_of
from fedstage.protocol.teaching import teaching
from fedstage.settings.base import NonNegative, Rate, Settings
from fedstage.settings.data_sets import DataSet, same_source
from fedstage.settings.optimisation import Client


class Noise(Settings):
    """The norm to which vectors are clipped, and the noise of their sum."""

    clip: Rate | None
    """C, the maximum L2 norm of what a unit adds to a sum; null: not clipped."""
    noise: NonNegative
    """Noise multiplier z: the standard deviation of the noise is z C."""
    delta: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Delta for which epsilon is computed, less than 1 / N for N units; null: N^-1.1."""

    def _faults(self) -> Iterator[str]:
        if self.clip is None and self.noise:
            yield f"clip = null: must be a number with noise = {self.noise}, a multiple of it"


class ClientPrivacy(Noise):
    """Differential privacy of clients: DP-FedAvg with flat clipping (McMahan et al. 2018)."""


class ExamplePrivacy(Noise):
    """Differential privacy of training samples: clients train by DP-SGD (Abadi et al. 2016)."""


class Privacy(Settings):
    """What differential privacy protects."""

    uses: ClassVar[Mapping[str, str]] = {
        "client": "algorithm.aggregation.private_mean",
        "example": "training.noisy_gradients",
    }
    client: ClientPrivacy | None = None
    """Protects all samples of a client together, from readers of the global models; by default off.
    """
    example: ExamplePrivacy | None = None
    """Protects each training sample by itself, from all who receive what clients send; by default
    off.
    """

    def _faults(self) -> Iterator[str]:
        if (self.client is None) == (self.example is None):
            yield "give either client or example: what is protected; or privacy = null"


def check_privacy(recipe: Any) -> Iterator[str]:
    """Yield settings that would invalidate a recipe's guarantee of privacy."""
    privacy = recipe.privacy
    if privacy is None:
        return
    if recipe.start is not None:
        yield "start: must be null with privacy, as epsilon does not count what it learnt"
    if teaching(recipe) is not None and shares_source(recipe):
        yield (
            f"public = {recipe.public.name}: has the source of data = {recipe.data.name}, so a "
            "student may learn from clients' own training samples; take held_out, or another data "
            "set, with privacy"
        )
    if privacy.client is not None and not hasattr(recipe, "aggregation"):
        yield "privacy.client: needs rounds, in which only averages are seen; give example"
    elif privacy.client is not None:
        yield from _check_average(recipe, privacy.client)
    if privacy.example is not None:
        yield from _check_gradients(recipe)


def shares_source(recipe: Any) -> bool:
    """Whether public samples may be clients' training samples.

    They may if they are read from the same files, whatever is then held out, or are dealt to
    clients, too.
    """
    if isinstance(recipe.public, DataSet):
        return same_source(recipe.data, recipe.public)
    dealt = recipe.core is not None and recipe.core.samples == "all"
    return dealt and recipe.public.name == "core"


def _check_average(recipe: Any, how: ClientPrivacy) -> Iterator[str]:
    """Yield settings by which a client may move its group's average by more than clip / n."""
    key, average = "with privacy.client", recipe.aggregation
    if recipe.on_divergence == "drop":
        yield (
            f"on_divergence = drop: must be stop {key}, because whether a training diverges "
            "depends on a client's samples, and everybody sees who is dropped"
        )
    delta = delta_of(how, recipe.clients)
    if delta * recipe.clients >= 1:
        yield f"privacy.client.delta = {delta}: must be less than 1 / {recipe.clients}"
    if average.weights != "uniform":
        yield f"aggregation.weights = {average.weights!r}: must be uniform {key}"
    if average.discount.name != "constant" or average.stale != "models":
        yield (
            f"aggregation.discount = {average.discount.name!r}, stale = {average.stale!r}: must be "
            f"constant and models {key}"
        )
    if recipe.participation not in ("uniform", "poisson"):
        yield f"participation = {recipe.participation!r}: must be poisson or uniform {key}"
    if average.batch_norm != "re_estimate" and any(map(has_batch_norm, models_of(recipe))):
        yield (
            f"aggregation.batch_norm = {average.batch_norm!r}: must be re_estimate {key}, as "
            "clients' running statistics are not clipped"
        )
    if teaching(recipe) is not None and recipe.ensemble.members != ("aggregated",):
        yield (
            f"ensemble = {recipe.ensemble.name!r}: must be aggregated {key}, as no noise is added "
            "to single clients' models"
        )


def _check_gradients(recipe: Any) -> Iterator[str]:
    """Yield why a sample's gradient is not its own, or why batches are not drawn sample by sample.

    What a client does with noisy gradients needs no check, because it is equally private.
    """
    key = "with privacy.example"
    for model in client_models(recipe) if hasattr(recipe, "local") else models_of(recipe):
        if has_batch_norm(model) or not model.by_sample:
            yield f"model = {model.name}: must have a gradient of each sample {key}, no batch norm"
    for name in ("batches", "last_batch"):
        allowed = Client.model_fields[name].default
        if (value := getattr(recipe.client, name)) != allowed:
            yield (
                f"client.{name} = {value!r}: must be {allowed} {key}, where each sample is in each "
                "batch at random"
            )
