"""What goes with what: parts of a recipe, by the traits that they need and lack."""

from typing import ClassVar, Literal

import pytest

from fedstage.settings.base import Settings, subclasses
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.public import Generated, public_part
from fedstage.settings.recipes import Recipe
from fedstage.settings.traits import Lacks, Needs, Part, Trait, clashes
from fedstage.settings.validation import validate


class Trainer(Settings):
    lacks: ClassVar[Lacks] = {"keeps_state": ("which keeps state", Trait.MEMORYLESS)}
    keeps_state: ClassVar[bool] = False


class Careful(Trainer):
    lacks: ClassVar[Lacks] = {"asks": ("", Trait.WEIGHTS)}
    keeps_state: ClassVar[bool] = True
    needs: ClassVar[Needs] = {"rate": (Trait.SGD,), "mode=slow": (Trait.IMAGES,)}
    name: Literal["careful"] = "careful"
    rate: float = 1.0
    mode: Literal["fast", "slow"] = "fast"
    asks: bool = False


class Samples(Settings):
    lacks: ClassVar[Lacks] = {"no images": ("which are {0.kind}", Trait.IMAGES)}
    kind: str = "sounds"
    images: bool = False


class Steps(Settings):
    lacks: ClassVar[Lacks] = {"optimiser": ("", Trait.SGD)}
    optimiser: str = "sgd"


class Both(Settings):
    local: Careful = Careful()
    data: Samples = Samples()
    client: Steps = Steps()


def told(**changes):
    return list(clashes(Both(**changes).declarations()))


def test_what_is_at_its_default_needs_and_lacks_nothing():
    assert told(client=Steps(optimiser="adam")) == []
    assert told(local=Careful(rate=0.5)) == []


def test_both_settings_are_named_and_what_is_needed():
    (message,) = told(local=Careful(rate=0.5), client=Steps(optimiser="adam"))
    assert message == f"local.rate = 0.5: needs {Trait.SGD}, not client.optimiser = adam"


def test_a_value_may_need_and_an_absent_one_lack_and_the_reason_names_values():
    (message,) = told(local=Careful(mode="slow"))
    assert message == (
        f"local.mode = slow: needs {Trait.IMAGES}, not data.images = false, which are sounds"
    )
    assert told(local=Careful(mode="slow"), data=Samples(images=True)) == []


def test_what_a_base_class_declares_holds_beside_what_its_own_does():
    waiting = Part("staleness", Samples(), {"name": (Trait.MEMORYLESS, Trait.WEIGHTS)}, {})
    assert list(clashes([waiting, *Careful(asks=True).declarations("local")])) == [
        f"staleness: needs {Trait.MEMORYLESS}, not local = careful, which keeps state",
        f"staleness: needs {Trait.WEIGHTS}, not local.asks = true",
    ]


@pytest.mark.parametrize("within", [None, 0.0, 2.0])
def test_a_condition_looks_into_settings_that_may_be_absent(within):
    class Outer(Settings):
        inner: Careful | None = None

    outer = Outer(inner=None if within is None else Careful(rate=within))
    assert Part("", outer, {}, {}).holds("inner.rate") == bool(within)


SERVER = {"epochs": 1, "batch_size": 8, "learning_rate": 0.1}
COMMON = {"data": "digits", "clients": 4, "partition": "iid", "model": "cnn_small", "seed": 0}
TRAINED = {**COMMON, "client": SERVER, "server": SERVER}
OF_ROUNDS = {"participants": 4, "ensemble": "clients", "global": "basic", "global_models": 2}


def test_every_trait_is_needed_by_something_and_lacked_by_something():
    held_out = {"data": {"digits": {"held_out": 9}}}
    roles = [
        *validate(Recipe, {**TRAINED, **OF_ROUNDS, **held_out}, "here").declarations(),
        *validate(OneShotRecipe, {**TRAINED, **held_out, "distillation": "kl"}, "").declarations(),
        public_part(Generated(name="generated")),
    ]
    for declared in ("needs", "lacks"):
        of_classes = [getattr(kind, declared) for kind in subclasses(Settings)]
        of_roles = [getattr(part, declared) for part in roles]
        traits = {
            one for named in (*of_classes, *of_roles) for some in named.values() for one in some
        }
        assert [trait.name for trait in Trait if trait not in traits] == [], declared
