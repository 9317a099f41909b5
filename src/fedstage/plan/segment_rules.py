"""Files and rules of segments; those that make the same files, for different recipes, share one.

One rule per segment would be simpler, but Snakemake searches all rules for each file it plans.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from fedstage.plan.data_files import AnyRecipe
from fedstage.plan.graph import File, Job, behind, files_in, folder_of, listed
from fedstage.plan.runs import Run, settings_of_folders
from fedstage.plan.scores import evaluation, metrics_file
from fedstage.plan.segments import LogitsSegment, Segment, plan
from fedstage.plan.source import source_of_job
from fedstage.plan.training import cached_labels, logits, selected_labels
from fedstage.plan.training_folder import FOLDER
from fedstage.protocol.exchange import is_stale
from fedstage.settings.recipes import Recipe

#: Options of files that do not change in a run: settings, data sets, and files made from these.
_COMMON = frozenset(("info", "data", "clients", "public", "odds", "histogram", "server_validation"))


def _kind(file: File) -> str:
    """Return the kind of a file with its round, which decides whether the file stays on disk."""
    stage = file.job.stage
    kind = "models" if stage.private is None or _is_temporary(file) else "updates"
    kind = "logits" if stage in (logits, cached_labels, selected_labels) else kind
    kind = "participants" if file.output == "participants" else kind
    return f"{kind}_{file.job.at['round']}"


def _is_temporary(file: File) -> bool:
    return file.output in file.job.stage.temporary


def inputs_of(jobs: Iterable[Job]) -> tuple[list[str], list[str]]:
    """Return the settings and data that jobs read, and the files of rounds that others make."""
    common: dict[str, None] = {}
    others: dict[str, None] = {}
    own = list(jobs)
    made = {file for job in own for file in job.files.values()}
    for job in dict.fromkeys(job.alike for job in own):
        for option, files in vars(job.read).items():
            read = common if option in _COMMON else others
            read.update(dict.fromkeys(file for file in listed(files) if file not in made))
    return list(common), list(others)


def outputs_of(jobs: Iterable[Job], kept: Collection[str] | None = None) -> list[File]:
    """Return the files of jobs that stay, in the order in which they are made.

    These are all, or the ones whose kinds and rounds are `kept`. A temporary one stays if no job
    reads it: so does the last state, from which later rounds go on.

    The order matters: snakemake renews the times of outputs one after the other, and a file must
    not be older than its inputs.
    """
    own = list(jobs)
    read = {file for job in {job.alike for job in own} for file in files_in(job.inputs)}

    def stays(file: File) -> bool:
        if _is_temporary(file):
            return file not in read
        return kept is None or _kind(file) in kept

    return [file for job in own for file in job.files.values() if stays(file)]


def needed(segment: Segment, jobs: Iterable[Job], read: Collection[str]) -> list[str]:
    """Return the kinds and rounds of files that are `read`, and of the segment's last models."""
    kinds = {_kind(file) for job in jobs for file in job.files.values() if file in read}
    return sorted({*kinds, f"models_{segment.last}"})


def files_read(runs: Iterable[Run], others: Iterable[Iterable[str]]) -> set[str]:
    """Return the files of rounds that segments (their `inputs_of` others) or evaluations read."""
    paths = set(chain.from_iterable(others))
    scores = [metrics_file(run.recipe, run.length) for run in runs]
    # An evaluation is made from the models, or from logits, which are made from them.
    for job in behind(scores, lambda job: job.stage in (evaluation, logits)):
        paths.update(file for file in files_in(job.inputs) if file.job.stage is not logits)
    return paths


def named(names: Iterable[str]) -> str:
    """Return a pattern that matches these names by the digests at their ends: short, hence fast."""
    ends = "|".join(dict.fromkeys(name.rpartition("-")[2] for name in names))
    return f"[^/]+-(?:{ends})" if ends else "(?!)"  # which matches nothing


Part = Segment | LogitsSegment


@dataclass(frozen=True)
class SegmentJob:
    """The job of a segment: settings, data and source, its words, and the files of other jobs."""

    part: Part
    reads: tuple[str, ...]
    sources: tuple[str, ...]
    words: str
    others: tuple[tuple[str, ...], ...]  # a tuple for each job that makes some

    @property
    def waits_for(self) -> list[str]:
        """One file of each other job: one that is not there, or else the first.

        Snakemake looks up one file instead of a hundred. If a run goes on, or more files are needed
        than before, some files of a job that has to be repeated are there.
        """
        return [next((one for one in own if not Path(one).exists()), own[0]) for own in self.others]

    def renamed(self, config: Recipe, name: Callable[[str], str]) -> "SegmentJob":
        """Return the job of another configuration, whose files have other names."""
        part, others = replace(self.part, recipe=config), (map(name, own) for own in self.others)
        reads = tuple(map(name, self.reads))
        return replace(self, part=part, reads=reads, others=tuple(map(tuple, others)))


@dataclass
class SegmentRule:
    """A rule: its outputs, with the wildcard ``{recipe}``, and the job of each recipe's id."""

    name: str
    outputs: tuple[str, ...]
    jobs: dict[str, SegmentJob] = field(default_factory=dict)

    @property
    def recipes(self) -> str:
        """The wildcard's constraint, by the digests at the ends of ids: short, hence fast."""
        return named(self.jobs)

    @property
    def first(self) -> Part:
        """One of the segments, which differ by their recipes alone."""
        return next(iter(self.jobs.values())).part

    @property
    def shell(self) -> str:
        """The command, the same for all recipes."""
        words = next(iter(self.jobs.values())).words
        return f"fedstage run {self.first.stage} {{input.recipe}} {words}"


def segment_rules(
    runs: Collection[Run], length: int, keep: str, files: Iterable[str]
) -> list[SegmentRule]:
    """Return the rules of the segments, of at most `length` rounds, that runs need.

    Runs that differ in their seed, or the alpha of their partition, alone have the same segments in
    other folders: the graph is searched once.

    Parameters
    ----------
    keep : str
        Which of the files that segments make stay.
    files : iterable of str
        Files of rounds that results read in addition to metrics.
    """
    wanted = set(files)  # which may come only once, and are looked through several times
    by_draw: dict[object, list[Run]] = defaultdict(list)
    for run in runs:
        by_draw[run.recipe.seed, _alpha(run.recipe)].append(run)
    alike: dict[object, list[list[Run]]] = defaultdict(list)
    for own in by_draw.values():
        alike[tuple((_but_draws(run.recipe), run.length) for run in own)].append(own)
    made: dict[SegmentJob, list[str]] = {}
    for draws in alike.values():
        settings = [settings_of_folders(run.recipe for run in own) for own in draws]
        from_first = [dict(zip(settings[0], own, strict=True)) for own in settings]
        to_first = [{own: first for first, own in name.items()} for name in from_first]
        read = {_renamed(path, name) for name in to_first for path in wanted}
        jobs = _segment_jobs(draws[0], length, keep, read)
        for configs, name in zip(settings, from_first, strict=True):
            rename = partial(_renamed, folders=name)
            for job, paths in jobs.items():
                config = configs[name[folder_of(FOLDER, job.part.recipe)]]
                made[job.renamed(config, rename)] = [*map(rename, paths)]
    return shared_rules(made)


def _alpha(recipe: AnyRecipe) -> float | None:
    return getattr(recipe.partition, "alpha", None)


def _but_draws(recipe: AnyRecipe) -> AnyRecipe:
    """Return what determines a run's segments, but for the names of folders."""
    changes: dict[str, Any] = {}
    if not (isinstance(recipe, Recipe) and is_stale(recipe)):  # else it draws a client's round
        changes["seed"] = 0
    if _alpha(recipe) is not None:
        changes["partition"] = recipe.partition.model_copy(update={"alpha": 1.0})
    return recipe.model_copy(update=changes)


def _renamed(path: str, folders: Mapping[str, str]) -> str:
    """Return the path of a file with another folder, ``results/NAME/CONFIGURATION``."""
    *folder, rest = path.split("/", 3)
    name = "/".join(folder)
    return f"{folders.get(name, name)}/{rest}"


def _segment_jobs(
    runs: Collection[Run], length: int, keep: str, files: Iterable[str]
) -> dict[SegmentJob, list[str]]:
    """Return the jobs of the segments that runs need, and their outputs."""
    trained, logits = plan(runs, length)
    parts: list[Part] = [*trained, *logits]
    jobs = {part: part.jobs() for part in parts}
    inputs = {part: inputs_of(own) for part, own in jobs.items()}
    kept: dict[Part, list[str]] = {}
    if keep == "needed":
        read = files_read(runs, (others for _, others in inputs.values())) | set(files)
        kept = {part: needed(part, jobs[part], read) for part in trained}
    outputs = {part: outputs_of(own, kept.get(part)) for part, own in jobs.items()}
    maker: dict[str, object] = {p: part for part, paths in outputs.items() for p in paths}
    made = {}
    for part, paths in outputs.items():
        common, others = inputs[part]
        by_maker: dict[object, list[str]] = defaultdict(list)
        for path in others:
            by_maker[maker.get(path, path)].append(path)
        if paths:  # a segment in whose rounds a server's model learns nothing makes nothing
            words = part.words + (f" kept={','.join(kept[part])}" if part in kept else "")
            sources = tuple(dict.fromkeys(source_of_job(job).file for job in jobs[part]))
            read_of = tuple(map(tuple, by_maker.values()))
            made[SegmentJob(part, tuple(common), sources, words, read_of)] = [*map(str, paths)]
    return made


def shared_rules(outputs: Mapping[SegmentJob, Sequence[str]]) -> list[SegmentRule]:
    """Return the rules of jobs, given the outputs of each.

    Where segments of the same rounds and groups have different outputs, names are numbered, with a
    word before the number, since names end in groups.
    """
    rules: dict[tuple[str, tuple[str, ...], str], SegmentRule] = {}
    same_name: dict[str, int] = {}
    for job, paths in outputs.items():
        name, recipe = job.part.name, PurePosixPath(folder_of(FOLDER, job.part.recipe)).name
        patterns = tuple(path.replace(f"/{recipe}/", "/{recipe}/", 1) for path in paths)
        key = (name, patterns, job.words)
        if key not in rules:
            number = same_name[name] = same_name.get(name, 0) + 1
            rules[key] = SegmentRule(name if number == 1 else f"{name}_kind_{number}", patterns)
        rules[key].jobs[recipe] = job
    return list(rules.values())
