"""Which lines own generators and what they generate.

As in `fedstage.plan.one_shot_sharing`, each is stripped of the settings that cannot reach it.
"""

from functools import cache
from typing import Any

from fedstage.plan.one_shot_sharing import NO_CLIENT, local_line
from fedstage.settings.generators import OF_SAMPLING
from fedstage.settings.models import LogisticRegression
from fedstage.settings.one_shot import GeneratorLine, OneShotLine

#: What the clients' samples and their partition depend on.
_OF_SAMPLES = (
    "data", "clients", "partition", "validation", "aggregator_fraction", "core", "numerics", "seed",
)  # fmt: skip

_NO_MODEL = LogisticRegression(name="logistic_regression")


def generates(line: OneShotLine) -> bool:
    """Whether a line's predictions depend on generated images."""
    return line.distillation is not None and line.public.name == "generated"


def reads_models(line: OneShotLine) -> bool:
    """Whether a line's predictions depend on the clients' models."""
    return line.distillation is None or line.distillation.teacher == "ensemble"


@cache
def generating(line: OneShotLine) -> GeneratorLine:
    """Return the line of the images that a line's generator makes."""
    assert line.generator is not None, "checked by OneShotLine: who reads such images has one"
    local = local_line(line)
    read: dict[str, Any] = {name: getattr(local, name) for name in _OF_SAMPLES}
    read |= {"model": _NO_MODEL, "client": NO_CLIENT}
    read |= {"generator": line.generator, "forget": tuple(sorted(set(line.forget)))}
    return GeneratorLine.model_construct(**read)


@cache
def training_generators(line: OneShotLine) -> GeneratorLine:
    """Return the line of the clients' generators, however many images are made with whose."""
    images = generating(line)
    generator = images.generator
    assert generator is not None, "generating returns a line with a generator"
    fields = type(generator).model_fields
    unread = {name: fields[name].default for name in OF_SAMPLING}
    return images.model_copy(
        update={"forget": (), "generator": generator.model_copy(update=unread)}
    )
