"""Rules of segments; segments that make the same files, for different recipes, share a rule.

One rule per segment would be simpler, but Snakemake searches all rules for each file it plans.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from fedstage.plan import segment_files
from fedstage.plan.graph import folder_of
from fedstage.plan.rules import command, named
from fedstage.plan.runs import Run
from fedstage.plan.segments import Kept, LogitsSegment, Segment, plan
from fedstage.plan.source import source_of
from fedstage.plan.stages import STAGES
from fedstage.plan.training_folder import FOLDER
from fedstage.settings.config_file import Keep

Part = Segment | LogitsSegment


@dataclass(frozen=True)
class SegmentJob:
    """The job of a segment: settings and data, what it waits for, and its options."""

    part: Part
    reads: tuple[str, ...]
    waits_for: tuple[str, ...]
    options: str

    @property
    def source(self) -> str:
        """The fingerprint that the job's rule carries."""
        return source_of(self.part.recipe, self.part.stage, members=self.part.members)


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
        options = next(iter(self.jobs.values())).options
        return f"{command(STAGES[self.first.stage], ())} {options}"


def segment_rules(
    runs: Collection[Run], length: int, keep: Keep, files: Iterable[str]
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
    inputs = {part: segment_files.inputs(own) for part, own in jobs.items()}
    read = segment_files.files_read(runs, (others for _, others in inputs.values())) | set(files)
    kept: dict[Part, Kept] = {
        part: segment_files.rounds_kept(part, jobs[part], keep, read) for part in trained
    }
    outputs = {part: segment_files.outputs(own, kept.get(part)) for part, own in jobs.items()}
    # A job that reads many files of another one names only the first of them as its input:
    # snakemake looks up one file instead of a hundred, and searches a rule's outputs in order.
    first: dict[str, str] = {path: paths[0] for paths in outputs.values() for path in paths}
    made = {}
    for part, paths in outputs.items():
        common, others = inputs[part]
        waits_for = tuple(dict.fromkeys(first.get(path, path) for path in others))
        if paths:  # a segment in whose rounds a server's model learns nothing makes nothing
            options = part.options(kept.get(part, {}))
            made[SegmentJob(part, tuple(common), waits_for, options)] = paths
    return shared_rules(made)


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
        key = (name, patterns, job.options)
        if key not in rules:
            number = same_name[name] = same_name.get(name, 0) + 1
            rules[key] = SegmentRule(name if number == 1 else f"{name}_kind_{number}", patterns)
        rules[key].jobs[recipe] = job
    return list(rules.values())
