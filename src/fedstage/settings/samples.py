"""Checks that models, public samples and partitions suit the data."""

from collections.abc import Iterable, Iterator

from fedstage.protocol.groups import head_of
from fedstage.settings.base import is_plugin
from fedstage.settings.data import CoreSamples, Data, Digits, Generated, OwnTensors, Public, Texts
from fedstage.settings.data_sets import ImageSet
from fedstage.settings.generators import Generator, RoundGenerator
from fedstage.settings.models import Lower, Model, OfTexts, Transformer, Upper
from fedstage.settings.numerics import Numerics
from fedstage.settings.partitions import Core, Partition


def check_public(
    data: Data,
    public: Public,
    core: Core | None,
    generator: Generator | RoundGenerator | None = None,
) -> Iterator[str]:
    """Yield the faults of a public set with no or other samples, or changed without effect."""
    if public.name == "generated" and generator is None:
        yield "generator = null: must be one that students learn from, with public = generated"
    if public.name == "core" and core is None:
        yield "core = null: must be one with public = core, such as core = {samples: share}"
    if public.name == "held_out":
        if not data.holds_out:
            yield "data.held_out = 0: must be at least 1 with public = held_out"
        return
    if not isinstance(public, CoreSamples | Generated):
        of = getattr(data, "of", data)  # an encoder takes public data, too
        if of.samples != public.samples:
            yield f"public = {public.name}: must be {of.samples}, as data = {of.name} has"
    channels, own = (1 if isinstance(one, Digits) else 3 for one in (public, data))
    known = (
        isinstance(one, ImageSet) and not (isinstance(one, OwnTensors) or is_plugin(one))
        for one in (public, data)
    )
    if all(known) and channels != own:
        yield (
            f"public = {public.name}: images with {channels} channels: must have {own}, as the "
            f"images of data = {data.name}, which the models are for"
        )
    for key, images in (("data", data), ("public", public)):
        if isinstance(images, ImageSet) and images.held_out_augmentation != "none":
            yield (
                f"{key}.held_out_augmentation = {images.held_out_augmentation!r}: must be none for "
                f"public = {public.name}, whose images stay as they are"
            )


#: Settings by which training samples are others than in the official split.
_CHOOSING = (
    "train_size", "train_fraction", "held_out", "server_validation", "division", "test_fraction"
)  # fmt: skip


def check_clients(data: Data, partition: Partition) -> Iterator[str]:
    """Yield a fault if a natural partition has no clients, or a table's samples are others.

    Plugins' data are read first.
    """
    if partition.name == "natural" and not (data.has_clients or is_plugin(data)):
        fault = f"partition = natural: data = {data.name} has no column of clients"
        yield f"{fault}; {data.clients_hint}"
    if partition.name == "table":
        chosen = {key: getattr(getattr(data, "of", data), key, None) for key in _CHOOSING}
        for key in (key for key, value in chosen.items() if value):
            yield (
                f"data.{key} = {chosen[key]}: not with partition = table, whose positions are of "
                "the official training split; leave it out"
            )


def check_models(data: Data, models: Iterable[Model], numerics: Numerics) -> Iterator[str]:
    """Yield models that do not take the samples of these data, or share no base weights."""
    models = tuple(dict.fromkeys(models))
    if len(models) > 1 and any(model.trainable for model in models):
        yield "model.trainable: all models of a run must be the same"
    for model in models:
        if data.samples not in model.samples:
            cure = f"; its class can say `samples: ClassVar = ({data.samples!r},)`"
            yield (
                f"model = {model.name!r}: takes {' or '.join(model.samples)}, and the samples of "
                f"data = {data.name} are {data.samples}{cure if is_plugin(model) else ''}"
            )
        if not isinstance(model, OfTexts) or not isinstance(data, Texts):
            continue
        if model.vocabulary < data.vocabulary_size:
            yield (
                f"model.vocabulary = {model.vocabulary}: must be at least data.vocabulary_size = "
                f"{data.vocabulary_size}"
            )
        if isinstance(model, Transformer) and model.positions < data.length:
            yield (
                f"model.positions = {model.positions}: must be at least data.length = {data.length}"
            )


def check_parts(where: str, server: Model, clients: Iterable[Model]) -> Iterator[str]:
    """Yield models of server and clients that are not parts of one, or do not fit together."""
    if not isinstance(server, Upper):
        yield f"model = {server.name!r}: must be resnet_upper, which takes features, with {where}"
        return
    for model in clients:
        if not isinstance(model, Lower) or model.width != server.width:
            yield (
                f"architectures: {model.name!r}: must be resnet_lower with width = {server.width}, "
                f"the server's, with {where}"
            )


def check_maps(where: str, models: Iterable[Model], headless: bool = False) -> Iterator[str]:
    """Yield models that do not pool feature maps or, with `headless`, that have a head."""
    for model in models:
        if not model.pools_maps or (headless and head_of(model) is not None):
            yield (
                f"model = {model.name!r}: {where} needs an architecture "
                f"{'without head ' if headless else ''}that pools its last feature maps, such as "
                "resnet8 or wrn16_2"
            )


def check_outputs(models: Iterable[Model], unknown: bool) -> Iterator[str]:
    """Yield models whose outputs would not be one per class, plus what clients learn besides."""
    for model in models:
        if model.more_outputs:
            yield (
                f"model.more_outputs = {model.more_outputs!r}: follows from unknown or prototypes; "
                "leave it out"
            )
        if unknown and getattr(model, "outputs", None) == 1:
            yield f"model = {model.name!r}: outputs = 1: must be one per class here"
