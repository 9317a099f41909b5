"""A prototype a class, which clients learn beside features that are alike in a class (FAFI)."""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from fedstage.settings.base import NonNegative, Rate, Settings
from fedstage.settings.data import Data
from fedstage.settings.models import Model
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Client


class Prototypes(Settings):
    """How clients learn a prototype a class in place of the last layer (FAFI).

    Of each batch a model sees two views. `near` weighs the cross entropy of a feature's similarity
    to the prototypes beside that of the logits, `apart` that of a prototype's to all prototypes,
    and `alike` the contrast of features of a class with others, with a `temperature`.
    """

    more_outputs: ClassVar[Literal["features"]] = "features"
    near: NonNegative = 1.0
    apart: NonNegative = 1.0
    alike: NonNegative = 1.0
    temperature: Rate = 0.07


def check_prototypes(
    data: Data, models: tuple[Model, ...], client: Client, numerics: Numerics
) -> Iterator[str]:
    """Yield what does not go with clients that learn prototypes."""
    if data.samples != "images":
        yield (
            f"prototypes: learnt of views of images, and the samples of data = {data.name} are "
            f"{data.samples}"
        )
    if client.loss.name != "cross_entropy":
        yield f"client.loss = {client.loss.name!r}: must be cross_entropy with prototypes"
    for model in models:
        if not model.pools_maps or getattr(model, "head", None) is not None:
            yield (
                f"model = {model.name!r}: prototypes need an architecture without head that pools "
                "its last feature maps, such as resnet8 or wrn16_2"
            )
    for key in ("compile", "cuda_graphs"):
        if getattr(numerics, key):
            yield f"numerics.{key} = true: not with prototypes, whose steps have no code for it"


def check_learnt_prototypes(line: Any) -> Iterator[str]:
    """Yield what a `OneShotLine` has that does not go with its prototypes."""
    models = line.architectures or (line.model,)
    yield from check_prototypes(line.data, models, line.client, line.numerics)
    if line.unknown is not None:
        yield "unknown: not with prototypes, which are learnt in its place"
    if line.quantisation.name != "none":
        yield f"quantisation = {line.quantisation.name!r}: not with prototypes"
    if line.start is not None:
        yield f"start = {line.start!r}: not with prototypes, which it has not"
    if len(set(models)) > 1 and line.aggregator.name == "fused_features":
        yield "architectures: must be one with aggregator = fused_features, for features to fit"
