"""What a run of snakemake has done so far."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass
class Progress:
    """Jobs of a run: planned by rule, running by number, finished with their seconds by rule."""

    cores: int = 1
    started: datetime | None = None
    planned: dict[str, int] = field(default_factory=dict)
    running: dict[int, tuple[datetime, str]] = field(default_factory=dict)
    finished: dict[str, list[float]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    @property
    def done(self) -> int:
        """The number of finished jobs."""
        return sum(map(len, self.finished.values()))

    @property
    def left(self) -> Mapping[str, int]:
        """How many jobs of each rule have not finished, in the order of the plan."""
        counts = {
            rule: count - len(self.finished.get(rule, ())) for rule, count in self.planned.items()
        }
        return {rule: count for rule, count in counts.items() if count > 0}
