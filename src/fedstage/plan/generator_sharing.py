"""Which lines own generators and what they generate.

As in `fedstage.plan.one_shot_sharing`, each is stripped of the settings that cannot reach it.
"""

from functools import cache
from typing import Any

from fedstage.plan.one_shot_sharing import NO_CLIENT, generates, generates_on_server, local_line
from fedstage.settings.generators import OfClients
from fedstage.settings.models import LogisticRegression
from fedstage.settings.one_shot import GeneratorLine, OneShotLine

#: What the clients' samples and their partition depend on.
_OF_SAMPLES = (
    "data", "clients", "partition", "validation", "aggregator_fraction", "core", "numerics", "seed",
)  # fmt: skip

#: What the clients' models depend on beside them.
_OF_MODELS = ("model", "architectures", "initialisation", "start", "client")

_NO_MODEL = LogisticRegression(name="logistic_regression")


def clients_generate(line: OneShotLine) -> bool:
    """Whether clients send generators, whose images a line's predictions depend on."""
    return generates(line) and not generates_on_server(line)


@cache
def generating(line: OneShotLine) -> GeneratorLine:
    """Return the line of the images that a line's generator makes."""
    assert line.generator is not None, "checked by OneShotLine: who reads such images has one"
    local = local_line(line)
    read: dict[str, Any] = {name: getattr(local, name) for name in _OF_SAMPLES}
    if line.generator.trained_by == "server":
        read |= {name: getattr(local, name) for name in _OF_MODELS}
        read |= {"student": line.student or line.model, "server": line.server}
    else:
        plain = {"compile": False, "cuda_graphs": False}
        numerics = local.numerics.model_copy(update=plain)
        read |= {"model": _NO_MODEL, "client": NO_CLIENT, "numerics": numerics}
    read |= {"generator": line.generator, "forget": tuple(sorted(set(line.forget)))}
    return GeneratorLine.model_construct(**read)


@cache
def training_generators(line: OneShotLine) -> GeneratorLine:
    """Return the line of the clients' generators, however many images are made with whose."""
    images = generating(line)
    generator = images.generator
    assert isinstance(generator, OfClients), "its caller has looked: clients train it"
    fields = type(generator).model_fields
    unread = {name: fields[name].default for name in generator.of_sampling}
    return images.model_copy(
        update={"forget": (), "generator": generator.model_copy(update=unread)}
    )
