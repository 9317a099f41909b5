"""Settings of an experiment's file that no run reads."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial

from fedstage.experiments.reach import Laid, Sources, laid_over, written
from fedstage.settings.experiments import Experiment, Scale
from fedstage.settings.merging import Raw, in_full, merge
from fedstage.settings.one_shot import OneShotRecipe
from fedstage.settings.recipes import Recipe
from fedstage.settings.suggestions import keys

#: The settings that only one kind of training has.
_KINDS = {key: "federated" for key in keys(Recipe) if key not in keys(OneShotRecipe)} | {
    key: "one_shot" for key in keys(OneShotRecipe) if key not in keys(Recipe)
}
#: The settings that only a student needs.
_OF_STUDENTS = ("generator", "student")


def unread_settings(sources: Sources, experiments: Mapping[str, Experiment]) -> Iterator[str]:
    """Yield a line for each setting in an experiment's file that none of its runs reads.

    Examples are `forget`, which only one-shot learning has, if all methods have rounds, or a
    method's `generator`, from which only a student learns, without a `distillation`. Such a setting
    is no error: a grid may be narrowed for a while. Runs of experiments that are `like` this one
    count as well.
    """
    for name, experiment in experiments.items():
        runs_at = cache(partial(_runs, sources, name, experiment))
        for scale, method, settings in written(sources.read(name)):
            suspects = [key for key in settings if key in _KINDS or key in _OF_STUDENTS]
            runs = runs_at(scale) if suspects else []
            own = [run for run in runs if method in (None, run.method, *run.like)]
            for key in suspects if own else ():
                if reason := _why_unread(key, own):
                    where = name if scale is None else f"{name}/{scale}"
                    place = "base" if method is None else f"methods.{method}"
                    yield f"{where}: {place}.{key}: no run reads it, as none {reason}"


def _kind(run: Laid) -> str:
    """Return what runs of a method train."""
    return str(run.settings.get("training", "federated"))


def _why_unread(key: str, runs: Collection[Laid]) -> str | None:
    """Return the property, missing in all runs, that would make a run read a setting."""
    # Runs of other kinds of training are recipes of both kinds.
    kinds = set(map(_kind, runs))
    kind = _KINDS.get(key)
    if kind and kinds <= {"federated", "one_shot"} and kind not in kinds:
        return f"is {kind}"
    if key in _OF_STUDENTS and not any(_teaches(run, key) for run in runs):
        return "has a distillation"
    return None


def _teaches(run: Laid, key: str) -> bool:
    """Whether runs have a student that reads its settings; federated runs check theirs."""
    if _kind(run) == "federated":
        return key in keys(Recipe)
    return run.settings.get("distillation") is not None


def _runs(sources: Sources, name: str, experiment: Experiment, scale: str | None) -> list[Laid]:
    """Return the settings of the runs of an experiment, and of experiments that are `like` it.

    The list is empty if an heir is broken. Settings that are varied have a text as their value.
    """
    heirs = sources.heirs(name)
    if heirs is None:
        return []
    found = []
    for heir, inheriting in ({name: experiment} | dict(heirs)).items():
        for key, change in inheriting.scales.items():
            if scale not in (None, key):
                continue
            base = merge(inheriting.base, change.base)
            for laid in laid_over(sources, base, heir, inheriting, key):
                varied = dict.fromkeys(_varied(inheriting, change, laid.settings), "varied")
                found.append(replace(laid, settings=laid.settings | varied))
    return found


def _varied(experiment: Experiment, change: Scale, settings: Raw) -> Iterator[str]:
    """Yield the keys of settings that come with an axis of the grid, or are chosen."""
    among = (settings.get("choose") or {}).get("among", {})
    yield from (path.partition(".")[0] for path in {**experiment.grid, **change.grid, **among})
    implied = [settings for values in experiment.implies.values() for settings in values.values()]
    for settings in (*implied, *(cell.settings for cell in change.cells)):
        yield from in_full(settings)
