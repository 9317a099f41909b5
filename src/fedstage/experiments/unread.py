"""Settings of an experiment's file that no run reads."""

from collections.abc import Collection, Iterator, Mapping

from fedstage.experiments.library import faults_of, heirs_of
from fedstage.experiments.reach import Sources, bases, laid_over
from fedstage.settings.experiments import Experiment, Scale
from fedstage.settings.lines import Line
from fedstage.settings.merging import Raw, in_full, merge
from fedstage.settings.one_shot import OneShotLine
from fedstage.settings.suggestions import keys

#: The settings that one kind of training has, and the other not.
_KINDS = {key: "federated" for key in keys(Line) if key not in keys(OneShotLine)} | {
    key: "one_shot" for key in keys(OneShotLine) if key not in keys(Line)
}
#: The settings of one shot that only a student needs.
_OF_STUDENTS = ("generator", "student")


def unread_settings(sources: Sources, experiments: Mapping[str, Experiment]) -> Iterator[str]:
    """Yield a line for each setting that an experiment's file has and no run of it reads.

    Such as `forget`, which only one-shot learning has, where all methods have rounds; or a method's
    `generator`, from which only a student learns, without a `distillation`. That is no fault: a
    grid may be narrowed for a while. It counts whether a run of an experiment that is `like` this
    one reads it.
    """
    for name, experiment in experiments.items():
        for scale, method, settings in _written(sources.read(name)):
            suspects = [key for key in settings if key in _KINDS]
            runs = list(_runs(sources, name, experiment, scale, method)) if suspects else []
            for key in suspects if runs else ():
                if reason := _why_unread(key, runs):
                    where = name if scale is None else f"{name}/{scale}"
                    place = "base" if method is None else f"methods.{method}"
                    yield f"{where}: {place}.{key}: no run reads it, as none {reason}"


def _written(own: Experiment) -> Iterator[tuple[str | None, str | None, Raw]]:
    """Yield what a file has for all scales or one, in the base or in a method."""
    for scale, base in bases(own):
        yield scale, None, base
    for method, settings in own.methods.items():
        yield None, method, settings
    for scale, change in own.scales.items():
        for method, settings in (change or Scale()).methods.items():
            yield scale, method, settings


def _why_unread(key: str, runs: Collection[tuple[str, Raw]]) -> str | None:
    """Return what no run is, or has, that would read a setting."""
    # Those that are trained apart are lines of both kinds.
    kinds = {kind for kind, _ in runs}
    if kinds <= {"federated", "one_shot"} and _KINDS[key] not in kinds:
        return f"is {_KINDS[key]}"
    of_one_shot = (run for kind, run in runs if kind != "federated")
    if key in _OF_STUDENTS and all(run.get("distillation") is None for run in of_one_shot):
        return "has a distillation"
    return None


def _runs(
    sources: Sources, name: str, experiment: Experiment, scale: str | None, method: str | None
) -> Iterator[tuple[str, Raw]]:
    """Yield the kinds and settings of an experiment's runs, and of those that are `like` it.

    All methods', or those that start from one; nothing if an heir is broken. What is varied has its
    axis for a value.
    """
    heirs = heirs_of(name, sources.known, sources.read)
    if heirs is None or faults_of([name], lambda _: sources.load(heirs)):
        return
    for heir, inheriting in [(name, experiment), *sources.load(heirs).items()]:
        for key, change in inheriting.scales.items():
            if scale not in (None, key):
                continue
            change = change or Scale()
            base = merge(inheriting.base, change.base)
            for one in laid_over(sources, base, heir, inheriting, key):
                if method in (None, one.method, *one.like):
                    varied = _varied(inheriting, change, one.settings)
                    settings = one.settings | dict.fromkeys(varied, "varied")
                    yield settings.get("training", "federated"), settings


def _varied(experiment: Experiment, change: Scale, settings: Raw) -> Iterator[str]:
    """Yield the keys of settings that come with an axis of the grid, or are chosen."""
    among = (settings.get("choose") or {}).get("among", {})
    yield from (path.partition(".")[0] for path in {**experiment.grid, **change.grid, **among})
    implied = [one for values in experiment.implies.values() for one in values.values()]
    for settings in (*implied, *(cell.settings for cell in change.cells)):
        yield from in_full(settings)
