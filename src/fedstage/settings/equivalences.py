"""Equivalent settings: each configuration has one simplest form, which names its files."""

from functools import cache
from typing import Any

from fedstage.protocol.exchange import averages_stale, exchanges_features, is_stale
from fedstage.protocol.groups import client_groups, has_batch_norm, models_of
from fedstage.protocol.one_shot import dealt_models
from fedstage.protocol.teaching import learns, re_estimates, students
from fedstage.settings.aggregation import Aggregation
from fedstage.settings.aggregators import AggregatorTraining
from fedstage.settings.data import HeldOut
from fedstage.settings.ensembles import GlobalTrainer
from fedstage.settings.groups import Cyclic, Random, Staleness, Synchronised
from fedstage.settings.models import Model
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.privacy import Privacy
from fedstage.settings.recipes import Recipe
from fedstage.settings.server import Server
from fedstage.settings.transfers import KlTransfer

#: Settings of a server that concern an ensemble's predictions.
OF_TEACHERS = ("temperature", "tau_squared", "sharpening")

#: Settings of clients that matter only over several rounds, at their defaults.
IN_ONE_TRAINING = {"round_decay": 1.0, "round_cosine": None, "batches": "anew"}  # prose: ok


@cache
def simplest(config: Any) -> Any:
    """Return the simplest form of a configuration, which all equivalent ones share."""
    if isinstance(config, OneShotRecipe):
        return _simplest_one_shot(config)
    return _simplest_of_rounds(config) if isinstance(config, Recipe) else config


# --- rounds ---------------------------------------------------------------------------------------


def _simplest_of_rounds(recipe: Recipe) -> Recipe:
    """Return a configuration of rounds with unused settings at their defaults."""
    simple: dict[str, Any] = {
        "staleness": shortest(recipe.staleness),
        "withdraw_stale": recipe.withdraw_stale and is_stale(recipe),
        "aggregation": recipe.aggregation.model_copy(update=_unread_aggregation(recipe)),
        "privacy": _without_delta(recipe.privacy),
        **_of_groups(recipe),
    }
    if not learns(recipe):
        simple |= {"ensemble": None, "distillation": KlTransfer(name="kl"), "generator": None}
        server = recipe.server if exchanges_features(recipe) else None
        simple["server"] = server and without_teacher(server)
        if not re_estimates(recipe):
            simple["public"] = HeldOut(name="held_out")
    if recipe.global_trainer is not None:
        simple["global_trainer"] = _simplest_trainer(recipe, recipe.global_trainer)
    if recipe.start is None:
        simple["start_of"] = "all"
    changed = recipe.model_copy(update=simple)
    return recipe if changed == recipe else changed  # identical objects are compared quickly


def shortest(staleness: Staleness) -> Staleness:
    """Return a staleness in its unique shortest form: ``none`` if no participant is ever late.

    Repeated delays are reduced to one cycle, and delays that are never drawn are left out.
    """
    if isinstance(staleness, Cyclic):
        delays = staleness.delays
        length = next(
            n
            for n in range(1, len(delays) + 1)
            if len(delays) % n == 0 and delays == delays[:n] * (len(delays) // n)
        )
        staleness = staleness.model_copy(update={"delays": delays[:length]})
        return staleness if any(staleness.delays) else Synchronised(name="none")
    if isinstance(staleness, Random):
        number = max(d for d, share in enumerate(staleness.probabilities, start=1) if share)
        staleness = staleness.model_copy(update={"probabilities": staleness.probabilities[:number]})
        return staleness if number > 1 else Synchronised(name="none")
    return staleness


def _of_groups(recipe: Recipe) -> dict[str, Any]:
    """Return the settings of groups and their architectures, in one form."""
    simple: dict[str, Any] = {}
    if len(client_groups(recipe)) == 1:
        simple["client_groups"] = "by_index"
    if set(recipe.architectures) == {recipe.model}:
        simple["architectures"] = ()
    return simple


def _simplest_trainer(recipe: Recipe, trainer: GlobalTrainer) -> GlobalTrainer:
    if trainer.name == "designated" and len(set(models_of(recipe))) == 1:
        # With one architecture, the main model is group 0's in any case.
        trainer = trainer.model_copy(update={"main": "first"})
    if not set(students(recipe)) & set(client_groups(recipe)):
        # The server's model starts from its previous one in any case.
        trainer = trainer.model_copy(update={"starts_from": "aggregated"})
    return trainer


def _unread_aggregation(recipe: Recipe) -> dict[str, Any]:
    """Return the unused settings of the aggregation, at their defaults."""
    names = [] if any(map(has_batch_norm, models_of(recipe))) else ["batch_norm"]
    if not averages_stale(recipe):
        names += ["discount", "stale"]
    return {name: Aggregation.model_fields[name].default for name in names}


def _without_delta(privacy: Privacy | None) -> Privacy | None:
    """Return privacy without the delta, which determines no weights."""
    if privacy is None:
        return None
    how = {name: kind and kind.model_copy(update={"delta": None}) for name, kind in privacy}
    return privacy.model_copy(update=how)


# --- one shot -------------------------------------------------------------------------------------


def _simplest_one_shot(recipe: OneShotRecipe) -> OneShotRecipe:
    """Return a one-shot configuration in its simplest form.

    Fields that a restricted configuration lacks stay absent.
    """
    simple: dict[str, Any] = {
        "aggregator_fraction": left_out(recipe),
        "local_fraction": None,
        "forget": tuple(sorted(set(recipe.forget))),
        "aggregator_training": _training(recipe),
        **_student(recipe),
    }
    if hasattr(recipe, "privacy"):
        simple["privacy"] = _without_delta(recipe.privacy)
    if hasattr(recipe, "client"):
        simple["client"] = recipe.client.model_copy(update=IN_ONE_TRAINING)
    if hasattr(recipe, "model"):
        models = _shortest_cycle(dealt_models(recipe))
        simple |= {"model": models[0], "architectures": models if len(models) > 1 else ()}
    return recipe.model_copy(update=simple)


def left_out(config: Any) -> float:
    """Return the fraction of each client's samples that does not train its model."""
    return 0.0 if config.local_fraction == 1 else config.aggregator_fraction


def _training(recipe: OneShotRecipe) -> AggregatorTraining | None:
    return recipe.aggregator_training if recipe.aggregator.trained else None


def _student(recipe: OneShotRecipe) -> dict[str, Any]:
    """Return the settings of a student, at their defaults where nothing depends on them."""
    none = {"student": None, "server": None, "generator": None, "public": HeldOut(name="held_out")}
    how = recipe.distillation
    if how is None:
        return none
    student = recipe.student or recipe.model
    if how.teacher == "moments":
        return none | {"student": student}
    generated = recipe.public.name == "generated"
    on_server = generated and recipe.generator is not None
    on_server = on_server and recipe.generator.trained_by == "server"  # type: ignore[union-attr]
    server = recipe.server
    if server is not None and how.name != "kl" and not on_server:
        server = without_teacher(server)
    generator = recipe.generator if generated else None
    return {"student": student, "server": server, "generator": generator}


def without_teacher(server: Server) -> Server:
    """Return a server's settings, with what concerns a teacher's predictions at its defaults."""
    defaults = {name: Server.model_fields[name].default for name in OF_TEACHERS}
    return server.model_copy(update=defaults)


def _shortest_cycle(models: list[Model]) -> tuple[Model, ...]:
    """Return the shortest prefix whose repetition yields all models."""
    lengths = range(1, len(models) + 1)
    repeats = (n for n in lengths if all(m == models[i % n] for i, m in enumerate(models)))
    return tuple(models[: next(repeats)])
