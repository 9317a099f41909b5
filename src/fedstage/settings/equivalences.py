"""Settings that mean the same: each configuration has one simplest form, which names its files."""

from functools import cache
from typing import Any

from fedstage.settings.aggregation import Aggregation
from fedstage.settings.aggregators import AggregatorTraining
from fedstage.settings.ensembles import GlobalTrainer
from fedstage.settings.exchange import (
    averages_stale,
    exchanges_features,
    is_stale,
    learns,
    shares_control,
    students,
)
from fedstage.settings.groups import BoundClients, client_groups, model_of, models_of
from fedstage.settings.lines import Line, re_estimates
from fedstage.settings.models import Model, has_batch_norm
from fedstage.settings.one_shot import OneShotLine
from fedstage.settings.public import HeldOut
from fedstage.settings.server import Server
from fedstage.settings.staleness import shortest
from fedstage.settings.transfers import KlTransfer

#: Settings of a server that are about an ensemble's predictions.
OF_TEACHERS = ("temperature", "tau_squared", "softened", "sharpening")

#: Settings of clients that matter only in several rounds, at their defaults.
IN_ONE_TRAINING = {"round_decay": 1.0, "batches": "anew"}


@cache
def simplest(config: Any) -> Any:
    """Return a configuration with the values that mean the same in one form."""
    if isinstance(config, OneShotLine):
        return _simplest_one_shot(config)
    return _simplest_of_rounds(config) if isinstance(config, Line) else config


# --- rounds ---------------------------------------------------------------------------------------


def _simplest_of_rounds(config: Line) -> Line:
    """Return a configuration of rounds with settings that nothing reads at their defaults."""
    simple: dict[str, Any] = {
        "staleness": shortest(config.staleness),
        "withdraw_stale": config.withdraw_stale and is_stale(config),
        "aggregation": config.aggregation.model_copy(update=_unread_aggregation(config)),
        **_of_groups(config),
    }
    if not learns(config):
        simple |= {"ensemble": None, "distillation": KlTransfer(name="kl"), "generator": None}
        server = config.server if exchanges_features(config) else None
        simple["server"] = server and without_teacher(server)
        if not re_estimates(config):
            simple["public"] = HeldOut(name="held_out")
    if config.global_trainer is not None:
        simple["global_trainer"] = _simplest_trainer(config, config.global_trainer)
    if config.start is None:
        simple["start_of"] = "all"
    if config.local.name == "scaffold" and not shares_control(config):
        simple["local"] = config.local.model_copy(update={"control": "per_model"})
    changed = config.model_copy(update=simple)
    return config if changed == config else changed  # the same object is soon found to be equal


def _of_groups(config: Line) -> dict[str, Any]:
    """Return what is about groups and their architectures, in one form."""
    simple: dict[str, Any] = {"client_architectures": _runs_of_clients(config)}
    groups = len(client_groups(config))
    if config.participants % groups < 2 or config.client_groups == "drawn":
        simple["remainder"] = "spread"  # a remainder of one is the first group's in any case
    if groups == 1:
        simple["client_groups"] = "slots"
    if set(config.architectures) == {config.model}:
        simple["architectures"] = ()
    return simple


def _simplest_trainer(config: Line, trainer: GlobalTrainer) -> GlobalTrainer:
    if trainer.name == "designated" and len(set(models_of(config))) == 1:
        # With one architecture the main model is group 0's in any case.
        trainer = trainer.model_copy(update={"main": "first"})
    if not set(students(config)) & set(client_groups(config)):
        # The server's model starts from its previous one in any case.
        trainer = trainer.model_copy(update={"starts_from": "aggregated"})
    return trainer


def _unread_aggregation(config: Line) -> dict[str, Any]:
    """Return the settings of the aggregation that nothing reads, at their defaults."""
    names = [] if any(map(has_batch_norm, models_of(config))) else ["batch_norm"]
    if not averages_stale(config):
        names += ["discount", "stale"]
    return {name: Aggregation.model_fields[name].default for name in names}


def _runs_of_clients(config: Line) -> tuple[BoundClients, ...]:
    """Return `client_architectures` in its unique shortest form.

    Neighbours that are bound to the same architecture are one entry, and trailing unbound clients
    are left out. If all groups that clients train have one architecture, no client is bound.
    """
    runs: list[BoundClients] = []
    several = len({model_of(config, group) for group in client_groups(config)}) > 1
    for part in config.client_architectures if several else ():
        if runs and runs[-1].model == part.model:
            part = part.model_copy(update={"clients": runs.pop().clients + part.clients})
        runs.append(part)
    return tuple(runs[:-1] if runs and runs[-1].model is None else runs)


# --- one shot -------------------------------------------------------------------------------------


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


def without_teacher(server: Server, names: tuple[str, ...] = OF_TEACHERS) -> Server:
    """Return a server's settings with these, which are about a teacher, at their defaults."""
    return server.model_copy(update={name: Server.model_fields[name].default for name in names})


def _shortest_cycle(models: list[Model]) -> tuple[Model, ...]:
    """Return the shortest prefix whose repetition gives all models."""
    lengths = range(1, len(models) + 1)
    repeats = (n for n in lengths if all(m == models[i % n] for i, m in enumerate(models)))
    return tuple(models[: next(repeats)])
