"""The rules of stages: outputs, log and command, as text with Snakemake's wildcards.

A stage is one rule, or a few where some configurations lack some of its outputs.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, get_args

from fedstage.plan.graph import Stage, always, place_value
from fedstage.plan.jobs import OF_ROUNDS
from fedstage.plan.members import PATTERN as MEMBERS
from fedstage.plan.results import RESULTS
from fedstage.plan.stages import GRAPH
from fedstage.plan.training import logits
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
    "choice": "[^/]+",
    "experiment": "[^/]+",
    "scale": r"[^/.]+",
}


@dataclass(frozen=True)
class Rule:
    """A rule: the stage, its outputs by option, and which of its wildcards it is for."""

    name: str
    stage: Stage
    outputs: Mapping[str, str]
    constraints: Mapping[str, str] = field(default_factory=dict)

    def place(self, wildcards: Any) -> tuple[Any, ...]:
        """Return the place of a job, by its wildcards."""
        values = dict(wildcards.items())
        return tuple(place_value(str(values[name])) for name in self.stage.place)

    def folder(self, wildcards: Any) -> str:
        """Return the folder of a job's files, by its wildcards."""
        folder = self.stage.folder
        return f"{RESULTS}/{folder.name}/{folder.pattern.format(**dict(wildcards.items()))}"

    @property
    def log(self) -> str:
        """The file of the log, named after the folder, and the main output if it has a place."""
        path = PurePosixPath(next(iter(self.outputs.values())))
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
        at = " ".join(f"{name}={{wildcards.{name}}}" for name in self.stage.place)
        return f"fedstage run {self.stage.name} {{input.recipe}} {at}".rstrip()


def stage_rules(configurations: Mapping[str, Any], by_participant: bool) -> Iterator[Rule]:
    """Yield the rules of all stages; each file matches at most one of them.

    Parameters
    ----------
    configurations : mapping
        All that own files, by their folders.
    by_participant : bool
        Whether the files of rounds are made by these rules, and not by segments.
    """
    names = set[str]()
    for stage in GRAPH:
        if by_participant or stage not in OF_ROUNDS or stage is logits:
            for rule in _rules_of(stage, configurations):
                if rule.name in names:  # the same stage in another folder
                    rule = replace(rule, name=f"{rule.name}_of_{stage.folder.name}")
                names.add(rule.name)
                if stage is logits and not by_participant:
                    # Logits of public images are computed in segments, as training is.
                    images = "|".join(get_args(Role))
                    rule = replace(rule, constraints={**rule.constraints, "images": images})
                yield rule


def _rules_of(stage: Stage, configurations: Mapping[str, Any]) -> Iterator[Rule]:
    """Yield the rules of a stage, one for each set of outputs that configurations have."""
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
        yield Rule(
            stage.name + more,
            stage,
            {name: _pattern(stage, name) for name in made},
            constraints={"recipe": named(of)} if few else {},
        )


def named(names: Iterable[str]) -> str:
    """Return a pattern that matches these names by the digests at their ends: short, hence fast."""
    return rf"[^/]+-(?:{'|'.join(dict.fromkeys(name.rpartition('-')[2] for name in names))})"


def _pattern(stage: Stage, output: str) -> str:
    """Return the path of an output with Snakemake's wildcards."""
    name = re.sub(r"\{(\w+):[^}]*\}", r"{\1}", stage.outputs[output])
    return f"{RESULTS}/{stage.folder.name}/{stage.folder.pattern}/{name}"
