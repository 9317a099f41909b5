"""The rule of a stage: outputs, log and command, as text with Snakemake's wildcards.

A stage is one rule, with exceptions that have their own rules: files that are temporary in some
rounds only, outputs that some configurations lack, and participants that train together.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, get_args

from fedstage.plan.graph import Command, Stage, always, place_value
from fedstage.plan.members import PATTERN as MEMBERS
from fedstage.plan.results import RESULTS
from fedstage.plan.stages import RECIPES
from fedstage.settings.scores import Role

#: What the wildcards in names of files stand for.
WILDCARDS = {
    "recipe": "[^/]+",
    "round": r"\d{4}",
    "first": r"\d{4}",
    "last": r"\d{4}",
    "group": r"\d+",
    "participant": r"\d+",
    "client": r"\d+",
    "members": MEMBERS,
    "images": "[^/]+",
    "who": r"each_client|client_\d+|pooled|core",
    "precision": "fp32|int8-[0-9a-f]{10}",
    "evaluated": r"[\w.=]+",
    "role": "|".join(get_args(Role)),
    "rounds": r"\d{4}",
    "every": r"\d+",
    "folder": "|".join(RECIPES),
    "choice": "[^/]+",
    "experiment": "[^/]+",
    "scale": r"[^/.]+",
}

#: Participants of a group that train in one job, and the configurations that have them, by name.
Cohorts = Mapping[tuple[int, tuple[int, ...]], Sequence[str]]


@dataclass(frozen=True)
class Rule:
    """A rule: the stage, its outputs by option, and which of its wildcards it is for."""

    name: str
    stage: Stage
    outputs: Mapping[str, str | list[str]]
    temporary: frozenset[str] = frozenset()
    constraints: Mapping[str, str] = field(default_factory=dict)
    participants: tuple[int, ...] = ()  # of the participants that train together

    def place(self, wildcards: Any) -> tuple[Any, ...]:
        """Return the place of a job, by its wildcards: the first where several train together."""
        values = dict(wildcards.items()) | (
            {"participant": self.participants[0]} if self.participants else {}
        )
        return tuple(place_value(str(values[name])) for name in self.stage.place)

    def folder(self, wildcards: Any) -> str:
        """Return the folder of a job's files, by its wildcards."""
        folder = self.stage.folder
        return f"{RESULTS}/{folder.name}/{folder.pattern.format(**dict(wildcards.items()))}"

    @property
    def log(self) -> str:
        """The file of the log, named after the folder, and the main output if it has a place."""
        first = next(iter(self.outputs.values()))
        path = PurePosixPath(first if isinstance(first, str) else first[0])
        below = path.with_suffix("").parts[2:] if self.stage.place else path.parts[2:-1]
        return f"{RESULTS}/logs/{self.stage.name}/{'/'.join(below)}.log"

    @property
    def message(self) -> str:
        """The description of a job, for people."""
        place = (name for name in self.stage.place if f"{{{name}}}" in self.log)
        where = ", ".join(f"{name} {{wildcards.{name}}}" for name in place)
        return f"{self.name}{': ' * bool(where)}{where} ({{wildcards.recipe}})"

    @property
    def shell(self) -> str:
        """The command."""
        return command(self.stage, self.outputs, self.participants)


def command(
    stage: Command, outputs: Iterable[str] | None = None, participants: Sequence[int] = ()
) -> str:
    """Return the shell command of a rule, from the options of its stage.

    It begins with the options that a person needs to run it: inputs, the values of its place, and
    outputs, by default all.
    """
    options = {name: f"{{input.{name}}}" for name in stage.options}
    if isinstance(stage, Stage):
        if not stage.folder.recipe:
            options[stage.folder.setting or "settings"] = "{params.settings:q}"
        options |= {name: f"{{params.{name}:q}}" for name in stage.checks}
        takes = stage.place if stage.takes is None else stage.takes
        options |= {name: f"{{wildcards.{name}}}" for name in takes}
        if "participant" in options and stage.several:
            single = options.pop("participant")
            options["participants"] = " ".join(map(str, participants)) or single
    made = stage.outputs if outputs is None else outputs
    options |= {name: f"{{output.{name}}}" for name in made}
    text = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in options.items())
    head = "--log {log} --fingerprint {params.source} {params.sources}"
    return f"fedstage {stage.name} {head} {text}"


def rules_of(
    stage: Stage, configurations: Mapping[str, Any], kept_rounds: Mapping[str, Sequence[int]]
) -> Iterator[Rule]:
    """Yield the rules of a stage; each file matches at most one of them.

    Parameters
    ----------
    configurations : mapping
        All that own files, by their folders.
    kept_rounds : mapping
        The rounds in which temporary outputs stay, by the names of folders.
    """
    names: dict[tuple[str, ...], list[str]] = {}
    for folder, config in configurations.items():
        _, kind, name, *_ = folder.split("/")
        if kind == stage.folder.name and stage.used(config):
            made = stage.outputs if stage.made is None else stage.made(config)
            names.setdefault(tuple(made), []).append(name)
    fewest = min(map(len, names), default=0)
    for made, of in names.items():
        few = stage.used is not always or stage.made is not None
        more = "".join(f"_with_{output}" for output in made[fewest:])
        rule = Rule(
            stage.name + more,
            stage,
            {name: _pattern(stage, name) for name in made},
            constraints={"recipe": named(of)} if few else {},
        )
        yield from _in_rounds(rule, of, kept_rounds)


def _in_rounds(
    rule: Rule, names: Iterable[str], kept: Mapping[str, Sequence[int]]
) -> Iterator[Rule]:
    """Yield a rule for rounds whose temporary outputs are deleted, and one for others.

    Folders that keep other rounds have rules of their own: what is deleted in a run does not depend
    on other runs.
    """
    temporary = frozenset(rule.stage.temporary) & rule.outputs.keys()
    if not temporary:
        yield replace(rule, temporary=frozenset(rule.stage.secret))
        return
    alike: dict[tuple[int, ...], list[str]] = {}
    for name in names:
        alike.setdefault(tuple(kept[name]), []).append(name)
    for rounds, some in alike.items():
        these = "|".join(f"{round_:04d}" for round_ in rounds)
        constraints, name = rule.constraints, rule.name
        if len(alike) > 1:
            constraints = {**constraints, "recipe": named(some)}
            name += "_".join(["_of", *map(str, rounds)])
        others = {**constraints, "round": rf"(?!(?:{these})/)\d{{4}}"}
        yield replace(rule, name=name, temporary=temporary, constraints=others)
        if rounds:
            yield replace(rule, name=f"{name}_kept", constraints={**constraints, "round": these})


def cohort_rules(rule: Rule, cohorts: Cohorts) -> Iterator[Rule]:
    """Yield a rule for each set of participants that train together, for configurations with it."""
    for (group, participants), names in cohorts.items():
        outputs = {
            option: [
                str(path).replace("{participant}", str(participant)) for participant in participants
            ]
            for option, path in rule.outputs.items()
        }
        yield replace(
            rule,
            name=f"cohort_of_group_{group}_participants_{participants[0]}_to_{participants[-1]}",
            outputs=outputs,
            constraints={**rule.constraints, "recipe": named(names), "group": str(group)},
            participants=participants,
        )


def named(names: Iterable[str]) -> str:
    """Return a pattern that matches these names by the digests at their ends: short, hence fast."""
    return rf"[^/]+-(?:{'|'.join(dict.fromkeys(name.rpartition('-')[2] for name in names))})"


def _pattern(stage: Stage, output: str) -> str:
    """Return the path of an output with Snakemake's wildcards."""
    name = re.sub(r"\{(\w+):[^}]*\}", r"{\1}", stage.outputs[output])
    return f"{RESULTS}/{stage.folder.name}/{stage.folder.pattern}/{name}"
