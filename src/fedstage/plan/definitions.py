"""The definitions of declaring modules that run in a job, counted one by one.

Modules of `settings` and `plan` are imported nearly everywhere, but few of their functions run in
any job. A definition counts if code that counts names it. A method, property or constant of a class
counts if code that counts reads an attribute of its name, and if the class is named or is one of
the job's settings. Fields of settings and their defaults do not count, because settings reach
results by their values; nor does code that checks settings, which the plan has done before any job.
"""

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from fedstage.plan.syntax import PACKAGE, Code, modules, source

#: Members and modules that check settings, or simplify those that name folders; they never count.
_CHECKS = ("_faults", "_check", "check_")
_CHECKING = tuple(
    f"fedstage.settings.{name}" for name in ("validation", "suggestions", "equivalences")
)


class Reached:
    """The definitions of declaring modules that code reaches, and the modules beyond."""

    def __init__(self, declaring: frozenset[str], package: Path = PACKAGE) -> None:
        self.declaring, self.package = declaring, package
        self.definitions: dict[str, str] = {}
        self.modules: set[str] = set()
        self._names: set[str] = set()
        self._attributes: set[str] = set()
        self._classes: set[tuple[str, str]] = set()

    def copy(self) -> "Reached":
        """Return a copy, to continue from."""
        other = Reached(self.declaring, self.package)
        other.definitions, other.modules = dict(self.definitions), set(self.modules)
        other._names, other._attributes = set(self._names), set(self._attributes)
        other._classes = set(self._classes)
        return other

    def add(self, code: Iterable[Code], classes: Iterable[tuple[str, str]] = ()) -> None:
        """Add what code names, and what is read of the classes that it names, or of `classes`."""
        self._classes.update(classes)
        waiting = list(code)
        while waiting:
            for part in waiting:
                self._attributes |= part.attributes
            new = frozenset().union(*(part.names for part in waiting)) - self._names
            self._names |= new
            waiting = [found for name in new if (found := self._named(name))]
            waiting = waiting or self._members()

    def name(self, name: str) -> None:
        """Add a definition by its full name, and what it reaches."""
        self.add(filter(None, [self._named(name)]))

    def finish(self, classes: Iterable[tuple[str, str]]) -> None:
        """Add what is read of classes, now that all code is known."""
        self._classes.update(classes)
        self.add(self._members())

    def _named(self, name: str) -> Code | None:
        """Return the definition of a full name, if it counts by itself and is new."""
        module, found = _defined(name, self.package)
        if module not in self.declaring:
            self.modules.add(module)
            return None
        code = source(module, self.package).definitions.get(found)
        key = f"{module}:{found}"
        if code is None or key in self.definitions or _checks(module, found):
            return None
        self._classes.add((module, found))
        self.definitions[key] = code.digest
        return code

    def _members(self) -> list[Code]:
        """Return the members of classes that are read and new."""
        found = []
        for module, name in self._classes:
            for member, code in _members_of(module, name, self.package):
                key = f"{module}:{name}.{member}"
                read = member in self._attributes or member.startswith("__")
                if read and key not in self.definitions:
                    self.definitions[key] = code.digest
                    found.append(code)
        return found


def is_check(module: str, names: Iterable[str]) -> bool:
    """Whether a definition of one of these names, such as ``Recipe._faults``, checks settings."""
    return any(_checks(module, name.rpartition(".")[2]) for name in names)


def _checks(module: str, name: str) -> bool:
    return module in _CHECKING or name.startswith(_CHECKS)


@cache
def _members_of(module: str, name: str, package: Path) -> list[tuple[str, Code]]:
    """Return the members of a class that count where they are read."""
    parts = source(module, package).definitions.items()
    split = ((*key.partition("."), code) for key, code in parts)
    return [
        (member, code)
        for owner, dot, member, code in split
        if dot and owner == name and not _checks(module, member)
    ]


@cache
def _defined(name: str, package: Path) -> tuple[str, str]:
    """Return the module that defines a name, however it was imported, and its name there."""
    known = modules(package)
    if name in known:
        return name, ""
    module, _, rest = name.rpartition(".")
    while module not in known:
        module, _, before = module.rpartition(".")
        rest = f"{before}.{rest}"
    first = rest.partition(".")[0]
    imported = source(module, package).imported.get(first)
    return _defined(imported, package) if imported else (module, first)
