"""Checks that models and settings suit the data."""

from collections.abc import Iterable, Iterator

from fedstage.settings.data import Data, Texts
from fedstage.settings.data_sets import ImageSet
from fedstage.settings.generators import Generator, RoundGenerator
from fedstage.settings.models import Lower, Model, OfTexts, Upper, head_of
from fedstage.settings.numerics import Numerics
from fedstage.settings.optimisation import Client
from fedstage.settings.partitions import Core, Partition
from fedstage.settings.public import CoreSamples, Generated, Public
from fedstage.settings.server import Server


def check_public(
    data: Data,
    public: Public,
    core: Core | None,
    generator: Generator | RoundGenerator | None = None,
) -> Iterator[str]:
    """Yield the faults of a public set with no or other samples, or changed without effect."""
    if public.name == "generated" and generator is None:
        yield (
            "generator = null: public = generated needs one that students learn from: fedftg in "
            "rounds; cvae, dense or coboosting with training = one_shot"
        )
    if public.name == "core" and core is None:
        yield "core = null: public = core needs one, such as core = {samples: share}"
    if public.name == "held_out":
        if not data.holds_out:
            yield "data.held_out = 0: public = held_out needs at least 1 sample"
        return
    if not isinstance(public, CoreSamples | Generated) and data.samples != public.samples:
        yield (
            f"public = {public.name}: has {public.samples}, and the samples of data = {data.name} "
            f"are {data.samples}: use held_out"
        )
    for key, images in (("data", data), ("public", public)):
        if isinstance(images, ImageSet) and images.held_out_augmentation != "none":
            yield (
                f"{key}.held_out_augmentation = {images.held_out_augmentation!r}: only in data, "
                f"with public = held_out; public = {public.name} gives its training images"
            )


def check_clients(data: Data, partition: Partition) -> Iterator[str]:
    """Yield a fault if a natural partition has no clients."""
    if partition.name == "natural" and not data.has_clients:
        fault = f"partition = natural: data = {data.name} has no column of clients"
        yield f"{fault}; {data.clients_hint}"


def check_samples(
    data: Data,
    models: tuple[Model, ...],
    client: Client,
    server: Server | None,
    numerics: Numerics,
) -> Iterator[str]:
    """Yield models and settings that do not suit the kind of samples."""
    kind = data.samples
    for model in models:
        if kind not in model.samples:
            yield (
                f"model = {model.name!r}: takes {' or '.join(model.samples)}, and the samples of "
                f"data = {data.name} are {kind}"
            )
        if numerics.compile and not model.compiles:
            yield f"numerics.compile = true: not for model = {model.name}; use false"
        if not isinstance(model, OfTexts) or not isinstance(data, Texts):
            continue
        if model.vocabulary < data.vocabulary_size:
            yield (
                f"model.vocabulary = {model.vocabulary}: must be at least data.vocabulary_size = "
                f"{data.vocabulary_size}, one for each token"
            )
    only = f"only for images, and the samples of data = {data.name} are {kind}"
    if kind != "images" and numerics.memory_format != "contiguous":
        yield f"numerics.memory_format = {numerics.memory_format!r}: {only}"
    if kind in ("bags", "tokens") and numerics.cuda_graphs:
        yield (
            f"numerics.cuda_graphs = true: not for the {kind} of data = {data.name}, because their "
            "batches differ in shape"
        )
    for key, part in (("client", client), ("server", server)):
        if kind != "images" and part is not None and part.augmentation != "none":
            yield f"{key}.augmentation = {part.augmentation!r}: {only}"


def check_parts(where: str, server: Model, clients: tuple[Model, ...]) -> Iterator[str]:
    """Yield models of server and clients that are not parts of one, or do not fit together."""
    if not isinstance(server, Upper):
        yield f"model = {server.name!r}: {where} needs one that takes features, resnet_upper"
        return
    for model in clients:
        if not isinstance(model, Lower):
            yield (
                f"architectures: {model.name!r}: {where} needs models that give features, "
                "resnet_lower"
            )
        elif model.width != server.width:
            yield (
                f"architectures: {model.name}.width = {model.width}: must be the server's, "
                f"model.width = {server.width}"
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
