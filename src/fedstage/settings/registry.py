"""The loaded plugins, registered by `fedstage.settings.plugins` when a process starts.

Unions of settings read this registry, so the module imports no settings.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Registry:
    """The loaded plugins.

    `named` has the paths that `config.yaml` names. `choices` has the settings classes of
    alternatives, by the room of their kind and by their names. `files` has the source file of each
    module of the plugins.
    """

    named: tuple[str, ...] | None = None
    choices: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)

    def of_rooms(self, rooms: set[str]) -> tuple[Any, ...]:
        """Return the settings classes of alternatives of some rooms, each once."""
        found = (kind for room in sorted(rooms) for kind in self.choices.get(room, {}).values())
        return tuple(dict.fromkeys(found))

    def rooms_of(self, module: str) -> frozenset[str]:
        """Return the rooms of the alternatives that a module implements."""
        return frozenset(
            room
            for room, kinds in self.choices.items()
            if any(kind.__module__ == module for kind in kinds.values())
        )


PLUGINS = Registry()
