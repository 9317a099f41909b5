"""Compatibility of settings: traits that one part of a recipe needs, and that another may lack.

A settings class declares what it `needs` and what it `lacks` in terms of traits, and imports no
other class. One check compares all parts of a recipe. Each declaration has a condition: ``name``
(always); ``field`` (if the field is not at its default or, for an attribute that is not a field, if
it is true); ``field=value``; or ``no field`` (if it is null, false or 0).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple


class Trait(StrEnum):
    """What a part of a recipe may need, in the words of messages."""

    # Of clients and what they send.
    WEIGHTS = "clients that exchange weights"
    MEMORYLESS = "rounds that go on from global models alone"
    SGD = "client.optimiser = sgd, whose steps count gradients"
    NO_MOMENTUM = "client.momentum = 0"
    CROSS_ENTROPY = "client.loss = cross_entropy"
    OF_SERVER = "clients that learn from the server, local = {digest: {teacher: server}}"
    LEARNING = "clients that train models of classes"
    FREE_OUTPUTS = "outputs of models that nothing else takes"
    START_OUTPUTS = "models with the outputs of what they start from"
    # Of groups and global models.
    FIXED_GROUPS = (
        "client_groups = by_index, by which a group has as many participants in every round"
    )
    LASTING_GROUPS = "client_groups = drawn, or a single group that clients train"
    SERVER_MODEL = "server_model = true, a model that no client trains"
    HEAD = "a model with a head"
    SHARED = "global models that clients go on from, or designated and server_model = true"
    # Of the aggregation.
    AVERAGE = "aggregation.rule = average"
    PLAIN_AVERAGE = "the plain average of clients' models"
    SUM = "updates of which the server needs the sum alone"
    ONLY_AVERAGED = "global models that are the old ones with averaged changes"
    STATISTICS = "global models with running statistics"
    CLIPPED = "changes of models that are all that clients send, because nothing else is clipped"
    NOISY = "clients that send nothing but what comes of gradients with noise"
    # Of students, and of their teachers.
    SERVER = "the server's settings"
    ENSEMBLE = "an ensemble that teaches, clients, aggregated or bayesian"
    CLIENTS = "ensemble = clients"
    UNIFORM = "ensemble = clients with uniform weights, of logits"
    MODELS = "members that compute logits of any images, all of which teach"
    CHOSEN = "an ensemble that predicts with clients' models"
    DISTILLED = "a server that learns from an ensemble"
    KL = "distillation = kl"
    SELECTION = "distillation = fedgems"
    STEPS = "server.steps"
    EPOCHS = "server.epochs"
    KEPT = "a student of the server, trained by itself"
    BUFFERED = "a student that is trained by itself"
    JUDGED = "client models that are fused in rounds"
    SUBSETS = "rounds of public images"
    AUGMENTED = "public images"
    LIVE = "teachers in rounds that look at a student's public images"
    ROUNDS = "rounds"
    # Of samples and images.
    IMAGES = "samples that are images"
    VALIDATION = "data.server_validation of at least 1 sample, to judge models by"
    OWN_SAMPLES = "public = core, whose samples are labelled"
    LABELS = "labelled public samples, public = core or generated"
    PRESENT = "public images that are there before students learn"
    GENERATED = "public = generated"
    FROM_SERVER = "a generator that the server trains, dense or coboosting"
    # Of numerics.
    COMPILED = "losses with compiled code"
    GRAPHS = "training steps that can be recorded"


#: Traits of students that learn from public images by themselves; all other students lack these.
OF_STUDENTS = (Trait.KEPT, Trait.BUFFERED, Trait.JUDGED, Trait.SUBSETS, Trait.AUGMENTED, Trait.LIVE)

#: Traits that clients need if each keeps its own model.
KEEPING = (Trait.SERVER, Trait.LASTING_GROUPS)

#: Traits that trainers lack if they scale changes, because their averages are then not plain.
SCALED = (Trait.PLAIN_AVERAGE, Trait.CLIPPED, Trait.SUM)

#: Traits that steps of students and clients lack if they can only run as written.
UNRECORDED = (Trait.COMPILED, Trait.GRAPHS)


#: Conditions, with the traits that are needed under them.
Needs = Mapping[str, tuple[Trait, ...]]
#: Conditions, with the traits that are lacking under them. The first item is the reason, which may
#: be empty, or name a value of the settings as {0.key}.
Lacks = Mapping[str, tuple[str, *tuple[Trait, ...]]]


class Part(NamedTuple):
    """Settings of a recipe at a key, and their declarations."""

    key: str
    settings: Any
    needs: Needs
    lacks: Lacks

    def holds(self, condition: str) -> bool:
        """Whether a condition of a declaration holds."""
        name, _, value = condition.removeprefix("no ").partition("=")
        if name == "name":
            return True
        current = self.settings
        for part in name.split("."):
            current = getattr(current, part, None)
        if condition.startswith("no ") or value:
            return str(current) == value if value else not current
        field = type(self.settings).model_fields.get(name)
        return bool(current) if field is None else current != field.default

    def shown(self, condition: str) -> str:
        """Return key and value of a condition's field, as in messages."""
        field = re.sub("^no |[=.].*", "", condition)
        whole = field == "name" or field not in type(self.settings).model_fields
        value = getattr(self.settings, "name" if whole else field, self.settings)
        value = getattr(value, "name", value)
        key = self.key if whole else f"{self.key}.{field}".removeprefix(".")
        plain = value is None or isinstance(value, str | int | float)
        return f"{key} = {_NAMES.get(str(value), value)}" if plain else key


_NAMES = {"None": "null", "True": "true", "False": "false"}


def clashes(parts: Iterable[Part]) -> Iterator[str]:
    """Yield what a part needs and another lacks, with the names of both parts."""
    parts = list(parts)
    lacking = {trait: (part, condition) for part in reversed(parts)
               for condition in filter(part.holds, part.lacks)
               for trait in part.lacks[condition][1:]}  # fmt: skip
    for part in parts:
        for condition in filter(part.holds, part.needs):
            for trait in filter(lacking.__contains__, part.needs[condition]):
                other, lack = lacking[trait]
                why = other.lacks[lack][0].format(other.settings)
                lacking_it = ", ".join(filter(None, (other.shown(lack), why)))
                yield f"{part.shown(condition)}: needs {trait}, not {lacking_it}"
