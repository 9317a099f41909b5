"""Settings that mean the same: each configuration has one simplest form, which names its files."""

from functools import cache
from typing import Any

from fedstage.settings.aggregators import AggregatorTraining
from fedstage.settings.models import Model
from fedstage.settings.one_shot import OneShotLine
from fedstage.settings.public import HeldOut
from fedstage.settings.server import Server

#: Settings of clients that matter only in several rounds, at their defaults.
IN_ONE_TRAINING = {"round_decay": 1.0, "batches": "anew"}


@cache
def simplest(config: Any) -> Any:
    """Return a configuration with the values that mean the same in one form."""
    return _simplest_one_shot(config) if isinstance(config, OneShotLine) else config


def _simplest_one_shot(config: OneShotLine) -> OneShotLine:
    """Return a one-shot configuration in its simplest form.

    Fields that a restricted configuration lacks stay absent.
    """
    simple: dict[str, Any] = {
        "aggregator_fraction": left_out(config),
        "local_fraction": None,
        "forget": tuple(sorted(set(config.forget))),
        "aggregator_training": _training(config),
        **_student(config),
    }
    if hasattr(config, "client"):
        simple["client"] = config.client.model_copy(update=IN_ONE_TRAINING)
    if hasattr(config, "model"):
        models = _shortest_cycle(dealt_models(config))
        simple |= {"model": models[0], "architectures": models if len(models) > 1 else ()}
    simple["numerics"] = config.numerics.model_copy(update={"logits": "fp32"})
    return config.model_copy(update=simple)


def left_out(config: Any) -> float:
    """Return the fraction of clients' samples that do not train their models."""
    return 0.0 if config.local_fraction == 1 else config.aggregator_fraction


def dealt_models(config: Any) -> list[Model]:
    """Return the architecture of each client; several are dealt out in turn."""
    models = config.architectures or (config.model,)
    return [models[client % len(models)] for client in range(config.clients)]


def _training(config: OneShotLine) -> AggregatorTraining | None:
    return config.aggregator_training if config.aggregator.trained else None


def _student(config: OneShotLine) -> dict[str, Any]:
    """Return what is about a student, at its defaults where nothing depends on it."""
    none = {"student": None, "server": None, "generator": None, "public": HeldOut(name="held_out")}
    how = config.distillation
    if how is None:
        return none
    student = config.student or config.model
    if how.teacher == "moments":
        return none | {"student": student}
    generated = config.public.name == "generated"
    on_server = generated and config.generator is not None
    on_server = on_server and config.generator.trained_by == "server"  # type: ignore[union-attr]
    server = config.server
    if server is not None and how.name != "kl" and not on_server:
        server = without_teacher(server, ("temperature", "tau_squared", "sharpening"))
    generator = config.generator if generated else None
    return {"student": student, "server": server, "generator": generator}


def without_teacher(server: Server, names: tuple[str, ...]) -> Server:
    """Return a server's settings with these, which are about a teacher, at their defaults."""
    return server.model_copy(update={name: Server.model_fields[name].default for name in names})


def _shortest_cycle(models: list[Model]) -> tuple[Model, ...]:
    """Return the shortest prefix whose repetition gives all models."""
    lengths = range(1, len(models) + 1)
    repeats = (n for n in lengths if all(m == models[i % n] for i, m in enumerate(models)))
    return tuple(models[: next(repeats)])
