"""Files and rules of segments; those that make the same files, for different recipes, share one.

One rule per segment would be simpler, but Snakemake searches all rules for each file it plans.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path, PurePosixPath

from fedstage.plan.graph import File, Job, behind, files_in, folder_of, listed
from fedstage.plan.runs import Run
from fedstage.plan.scores import evaluation, metrics_file
from fedstage.plan.segments import LogitsSegment, Segment, plan
from fedstage.plan.training import cached_labels, logits, selected_labels
from fedstage.plan.training_folder import FOLDER
from fedstage.settings.recipes import Recipe
from fedstage.settings.runs import RunLength

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
    for run in runs:
        if isinstance(run.recipe, Recipe):
            paths.update(_evaluated(run.recipe, run.length))
    return paths


def _evaluated(recipe: Recipe, length: RunLength) -> Iterator[str]:
    """Yield the files that an evaluation, or the logits that it reads, are made from."""
    scores = [metrics_file(recipe, length)]
    for job in behind(scores, lambda job: job.stage in (evaluation, logits)):
        yield from (file for file in files_in(job.inputs) if file.job.stage is not logits)


def named(names: Iterable[str]) -> str:
    """Return a pattern that matches these names by the digests at their ends: short, hence fast."""
    ends = "|".join(dict.fromkeys(name.rpartition("-")[2] for name in names))
    return f"[^/]+-(?:{ends})" if ends else "(?!)"  # which matches nothing


Part = Segment | LogitsSegment


@dataclass(frozen=True)
class SegmentJob:
    """The job of a segment: settings and data, what it waits for, and its words."""

    part: Part
    reads: tuple[str, ...]
    waits_for: tuple[str, ...]
    words: str


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

    Parameters
    ----------
    keep : str
        Which of the files that segments make stay.
    files : iterable of str
        Files of rounds that results read in addition to metrics.
    """
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
        waits_for = tuple(one_of_each(others, maker))
        if paths:  # a segment in whose rounds a server's model learns nothing makes nothing
            stay = f" kept={','.join(kept[part])}" if part in kept else ""
            made[SegmentJob(part, tuple(common), waits_for, part.words + stay)] = paths
    return shared_rules(made)


def one_of_each(paths: Iterable[str], maker: Mapping[str, object]) -> Iterator[str]:
    """Yield one of the paths that have the same maker: one that is not there, or else the first.

    Snakemake looks up one file instead of a hundred. If a run goes on, or more files are needed
    than before, some files of a job that has to be repeated are there.
    """
    read: dict[object, list[str]] = {}
    for path in paths:
        read.setdefault(maker.get(path, path), []).append(path)
    for own in read.values():
        yield next((path for path in own if not Path(path).exists()), own[0])


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
