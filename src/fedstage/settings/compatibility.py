"""What does not go together in a recipe: it would give a wrong number or a false guarantee.

Each line of the table is about something that one setting needs and another lacks, because the one
would be ignored, or would no longer be what it is called. A condition on a recipe is ``key`` (the
setting is not at its default or, for an attribute that is not a setting, it is true), ``no key``
(it is null, false or 0), ``key=a|b`` or ``key!=a|b``. A choice has the value of its name, and the
names of the choices from which a plugin's class inherits.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from fedstage.protocol.exchange import history, is_judged, learns_from_server, merges
from fedstage.protocol.one_shot import changes_loss
from fedstage.settings.base import Choice, Settings

#: What follows from settings: functions of the part that has the setting.
DERIVED: dict[str, Callable[[Any], Any]] = {
    "local.history": history,
    "local.is_judged": is_judged,
    "local.learns_from_server": learns_from_server,
    "model.merges": merges,
    "unknown.changes_loss": changes_loss,
}
_CONDITION = re.compile(r"(no )?([\w.]+?)(?:(!?)=([\w|.]+))?")

#: What is needed, the conditions under which it is needed, and those under which it is lacking.
CLASHES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    # --- clients and what they send
    (
        "clients that exchange weights",
        ("aggregation.rule", "aggregation.batch_norm", "aggregation.secure", "head_sharing",
         "privacy.client", "compression", "staleness"),
        ("local.exchanges=logits|features|prototypes",),
    ),
    (
        "rounds that go on from global models alone",
        ("staleness",),
        ("head_sharing", "local.keeps_state", "compression", "aggregation.batch_norm=local",
         "personal"),
    ),
    (
        "updates of one model, sent as it is", ("personal", "local.has_own_model"),
        ("global_trainer", "head_sharing", "aggregation.secure",
         "local.exchanges=logits|features|prototypes", "local.history"),
    ),
    ("gradients without noise", ("personal.epochs", "local.has_own_model"), ("privacy.example",)),
    ("client.optimiser = sgd", ("local=scaffold|fednova",), ("client.optimiser",)),
    ("aggregation.server_optimizer = drift", ("local=feddyn|feddc",),
     ("aggregation.server_optimizer!=drift",)),
    ("client.momentum = 0", ("local=scaffold",), ("client.momentum",)),
    ("client.loss = cross_entropy", ("unknown", "prototypes"), ("client.loss",)),
    ("client.steps", ("client.batches",), ("no client.steps",)),
    ("client.momentum > 0", ("client.nesterov",), ("no client.momentum",)),
    ("server.momentum > 0", ("server.nesterov",), ("no server.momentum",)),
    ("local.teacher = clients", ("local.cache",), ("local.teacher=server",)),
    ("distillation = fedgems", ("local.teacher=server",), ("no distillation.selects",)),
    ("local = {digest: {teacher: server}}", ("distillation=fedgems",),
     ("no local.learns_from_server",)),
    (
        "clients that train models of classes", ("generator", "prototypes"),
        ("distillation=closed_form",),
    ),
    ("outputs of models that nothing else takes", ("unknown", "quantisation"), ("prototypes",)),
    ("models with the outputs of what they start from", ("start",), ("unknown", "prototypes")),
    ("models that are trained as a whole", ("start", "quantisation"), ("model.trainable",)),
    ("averages of clients' matrices, and models in their updates",
     ("ensemble", "personal", "local.keeps_state", "local.has_own_model", "compression",
      "staleness", "privacy.client", "head_sharing", "aggregation.rule", "aggregation.secure",
      "aggregation.server_optimizer", "aggregation.learning_rate", "aggregation.batch_norm=local"),
     ("model.merges",)),
    # --- groups and the aggregation
    (
        "as many participants of a group in every round",
        ("aggregation.rule=trimmed_mean|krum", "aggregation.secure", "local=scaffold"),
        ("client_groups=drawn", "participation=poisson"),
    ),
    (
        "server_model = true", ("head_sharing", "start_of", "local.exchanges=features"),
        ("no server_model",),
    ),
    (
        "aggregation.rule = average",
        ("head_sharing", "local=scaffold|fednova", "privacy.client", "aggregation.discount",
         "aggregation.stale"),
        ("aggregation.rule",),
    ),
    (
        "the plain average of clients' models",
        ("server.drop_worst",),
        ("aggregation.rule", "aggregation.server_optimizer", "aggregation.learning_rate",
         "aggregation.stale", "aggregation.batch_norm", "aggregation.discount", "local=fednova",
         "head_sharing", "global_trainer.starts_from"),
    ),
    ("aggregation.learning_rate = 1, as the server's optimiser has its own",
     ("aggregation.server_optimizer",), ("aggregation.learning_rate",)),
    (
        "global models that are the old ones with averaged changes",
        ("compression",), ("head_sharing", "global_trainer"),
    ),
    ("running statistics of global models", ("local.history",), ("aggregation.batch_norm=local",)),
    # --- guarantees
    (
        "updates of which the server needs the sum alone",
        ("aggregation.secure",),
        ("aggregation.rule", "aggregation.batch_norm=local", "local=fednova", "compression",
         "local.weights=samples", "staleness", "privacy.client", "local.shares_state"),
    ),
    (
        "changes of models that are all that clients send, as nothing else is clipped",
        ("privacy.client",), ("head_sharing", "local=scaffold|fednova|fedgen"),
    ),
    (
        "clients that send nothing but what comes of gradients with noise",
        ("privacy.example",),
        ("ensemble=odds", "local.own_loss", "local.exchanges=features"),
    ),
    (
        "no clients' samples but through gradients with noise", ("privacy.example",),
        ("unknown", "prototypes", "aggregator=weighted|voting", "members.judged",
         "aggregator_training=mirror_descent", "distillation=closed_form",
         "generator.trained_by=clients"),
    ),
    ("no label counts of clients", ("privacy",), ("generator=fedftg",)),
    # --- students and their teachers
    ("the server's settings",
     ("global_trainer", "local.exchanges=logits|features", "generator.trained_by=server"),
     ("no server",)),
    ("an ensemble that teaches", ("global_trainer",), ("no ensemble",)),
    ("a server that learns from an ensemble", ("global_trainer",), ("local=gkt|fedproto",)),
    ("ensemble = clients", ("local.exchanges=logits", "server.drop_worst"),
     ("no ensemble", "ensemble=odds|aggregated|bayesian")),
    ("ensemble = clients or aggregated, with uniform weights, of logits", ("generator=fedftg",),
     ("ensemble=odds|bayesian", "ensemble.weights", "ensemble.average")),
    ("members of equal weights", ("ensemble.average=median",),
     ("ensemble.weights", "ensemble=odds")),
    ("logits of clients of all groups, which teach in rounds", ("server.task_arithmetic",),
     ("ensemble=odds|aggregated|bayesian", "server.teacher_images", "server.factor_transfer",
      "server.drop_worst", "local=digest|gkt", "generator=fedftg", "training=one_shot")),
    ("members that compute logits of any images",
     ("server.teacher_images", "server.factor_transfer"), ("ensemble=bayesian",)),
    ("an ensemble that predicts with clients' models", ("unknown", "members"),
     ("distillation=labels|closed_form", "generator.trained_by=server")),
    ("distillation = kl", ("generator=fedftg",), ("no distillation.diverges",)),
    ("server.steps", ("generator=fedftg",), ("no server.steps",)),
    ("server.epochs", ("generator.trained_by=server",), ("no server.epochs",)),
    (
        "a student of the server, trained by itself",
        ("server.labels", "server.swa", "server.moving_average", "server.early_stopping"),
        ("local=digest|gkt", "generator=fedftg", "generator.trained_by=server"),
    ),
    ("a student that is trained by itself", ("server.buffer",),
     ("local=gkt", "generator=fedftg", "generator.trained_by=server")),
    ("client models that are fused in rounds", ("server.drop_worst",),
     ("local=digest|gkt", "generator=fedftg", "training=one_shot")),
    ("rounds of public images", ("server.samples_a_round",),
     ("local=gkt", "generator=fedftg", "training=one_shot")),
    ("public images", ("server.augmentation",), ("local=gkt", "generator=fedftg")),
    ("teachers in rounds that look at a student's public images",
     ("server.teacher_images", "server.factor_transfer"),
     ("local=digest|gkt", "generator=fedftg", "ensemble=odds", "training=one_shot")),
    ("rounds", ("server.buffer.after",), ("training=one_shot",)),
    # --- samples
    (
        "samples that are images",
        ("ensemble=odds", "generator.of_images", "aggregator=moe", "prototypes",
         "client.augmentation", "server.augmentation"),
        ("no data.are_images",),
    ),
    ("samples that are features", ("generator=mixture",), ("data.samples=images|tokens|bags",)),
    ("data.server_validation of at least 1 sample",
     ("local.is_judged", "server.early_stopping", "server.drop_worst", "server.task_arithmetic"),
     ("no data.server_validation",)),
    ("public = core, whose samples are labelled", ("distillation=fedgems",), ("public!=core",)),
    ("labelled public samples, public = core or generated",
     ("server.labels", "distillation=labels"), ("public!=core|generated",)),
    ("public = generated", ("generator",), ("public!=generated",)),
    ("public images that are there before students learn",
     ("aggregation.batch_norm=re_estimate", "local.exchanges=logits"),
     ("public=generated", "generator=fedftg")),
    ("a generator that the server trains, dense or coboosting", ("distillation=cotrained",),
     ("no generator", "generator.trained_by=clients")),
    # --- numerics
    (
        "training steps that can be recorded",
        ("numerics.cuda_graphs",),
        ("privacy.example", "unknown.changes_loss", "prototypes", "generator=fedftg",
         "server.teacher_images", "data.samples=bags|tokens", "model.dropout!=0.0"),
    ),
)  # fmt: skip


def clashes(recipe: object) -> Iterator[str]:
    """Yield what a setting needs and another lacks, with the keys and values of both."""
    for needed, needing, lacking in CLASHES:
        needs = [holds for condition in needing if (holds := holding(recipe, condition))]
        lacks = (holds for condition in lacking if needs and (holds := holding(recipe, condition)))
        if lack := next(lacks, None):
            yield from (f"{need}: needs {needed}, not {lack}" for need in needs)


def holding(recipe: object, condition: str) -> str | None:
    """Return key and value of the setting for which a condition holds, None if it does not."""
    no, path, above, last, other, values = _parsed(condition)
    part: Any = recipe
    for name in above:
        part = getattr(part, name, None)
    if part is None:
        return None
    value = DERIVED[path](part) if path in DERIVED else getattr(part, last, None)
    if no:
        holds = not value and (bool(above) or hasattr(part, last))
    elif values:
        holds = value is not None and bool(_names(value) & values) != other
    else:
        fields = type(part).model_fields if isinstance(part, Settings) else {}
        holds = value != fields[last].default if last in fields else bool(value)
    return _shown(part, above, last, value) if holds else None


@cache
def _parsed(condition: str) -> tuple[bool, str, list[str], str, bool, set[str]]:
    match = _CONDITION.fullmatch(condition)
    assert match is not None, condition
    no, path, other, values = match.groups()
    *above, last = path.split(".")
    return bool(no), path, above, last, bool(other), set(values.split("|")) if values else set()


def _names(value: object) -> set[str]:
    """Return the name of a choice and of those from which it inherits, or a value as text."""
    if not isinstance(value, Settings):
        return {str(value)}
    bases = [kind for kind in type(value).__mro__ if issubclass(kind, Choice)]
    inherited = {name for kind in bases if "name" in kind.model_fields for name in kind.names()}
    return {getattr(value, "name", ""), *inherited}


def _shown(part: object, above: list[str], last: str, value: object) -> str:
    """Return a key and its value; for an attribute that is not a setting, its part's."""
    of_part = bool(above) and (hasattr(type(part), last) or ".".join((*above, last)) in DERIVED)
    value = getattr(part if of_part else value, "name", part if of_part else value)
    key = ".".join(above if of_part else [*above, last]).replace("global_trainer", "global")
    words = {None: "null", True: "true", False: "false"}
    if value is None or isinstance(value, bool):
        return f"{key} = {words[value]}"
    return f"{key} = {value}" if isinstance(value, str | int | float) else key
