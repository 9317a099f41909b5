"""Plugins: alternatives of settings in the user's own files, or in installed packages.

A plugin is a Python file with a settings class, like the class of a built-in alternative, and with
the functions that its kind needs. `config.yaml` names files and folders of such files; packages
provide entry points of the group `fedstage.plugins`. All plugins are loaded once, when a process
starts.
"""

import inspect
import re
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.metadata import entry_points
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from fedstage.errors import FedstageError
from fedstage.settings import one_shot as _one_shot  # noqa: F401
from fedstage.settings import recipes as _recipes  # noqa: F401
from fedstage.settings.base import Choice, Settings, choices, subclasses
from fedstage.settings.registry import PLUGINS
from fedstage.settings.validation import nearest, suggest

_PACKAGE = __name__.partition(".")[0]


def hook_faults(kind: type[Any], settings: type[Any], declared: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with a class of a plugin that inherits from a class of this package.

    A method whose name is close to a hook's counts as misspelt, unless its file calls it.
    `settings` is the class of its settings, which must declare what `declared` requires for a hook.
    """
    built_in = [part for part in kind.__mro__ if part.__module__.partition(".")[0] == _PACKAGE]
    own = [part for part in kind.__mro__ if part.__module__ in PLUGINS.files]
    if not built_in:
        return
    yield from _undeclared(kind, built_in[-1], settings, declared)
    hooks = {name for part in built_in for name in vars(part) if not name.startswith("_")}
    for part in own:
        for name, meant in _misspelt(part, hooks):
            yield f"{kind.__name__}.{name}: no such hook; did you mean {meant!r}?"


def _undeclared(
    kind: type[Any], base: type[Any], settings: type[Any], declared: Mapping[str, str]
) -> Iterator[str]:
    """Yield the hooks that a class overrides although its settings do not declare them."""
    for hook, attribute in declared.items():
        own = getattr(kind, hook, None) is not getattr(base, hook, None)
        if own and not getattr(settings, attribute, True):  # a field counts as true
            yield (
                f"{kind.__name__}.{hook}: needs {attribute} = True in the settings class "
                f"{settings.__name__}"
            )


def _misspelt(part: type[Any], hooks: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the methods of a class that its file does not call, with the hooks they may be."""
    text = PLUGINS.files[part.__module__].read_text("utf-8")
    for name, value in vars(part).items():
        if callable(value) and name not in hooks and not name.startswith("_"):
            meant = nearest(name, hooks)
            if meant is not None and not re.search(rf"\.{name}\b", text):
                yield name, meant


def misfit(name: str, function: object, arguments: Sequence[str]) -> str:
    """Return what is wrong with a function that gets these arguments by position, or nothing."""
    if not callable(function):
        return f"{name} = {function!r}: must be a function"
    try:
        signature = inspect.signature(function)
    except ValueError:  # compiled code may have no signature
        return ""
    try:
        signature.bind(*arguments)
    except TypeError:
        own = ", ".join(signature.parameters)
        return f"{name}({own}): must take ({', '.join(arguments)})"
    return ""


#: Package whose modules are the files that `config.yaml` names.
PACKAGE = "fedstage_plugins"
GROUP = "fedstage.plugins"
#: Names that an alternative may have, because its name becomes part of file names.
_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)


def load_plugins(named: Sequence[str]) -> None:
    """Load the plugins of these files and folders, and of installed packages.

    Plugins that this process has loaded for other files are removed.

    Raises
    ------
    FedstageError
        If a path is missing, a file cannot be imported or is no plugin, or a name is taken.
    """
    named = [str(Path(path)) for path in named]
    if PLUGINS.named == tuple(named):
        return
    _unload()
    shown = {module: path for path in named for module in _find(path)}
    shown |= dict(_installed())
    for module, path in shown.items():
        _register(module, path)
    if PLUGINS.choices:
        _rebuild()
    PLUGINS.named = tuple(named)


def _unload() -> None:
    for module in [name for name in sys.modules if _is_of_file(name) or name in PLUGINS.files]:
        del sys.modules[module]
    if PLUGINS.choices:
        PLUGINS.choices.clear()
        _rebuild()
    PLUGINS.files.clear()
    PLUGINS.named = None


def _is_of_file(module: str) -> bool:
    """Whether a module is a file that `config.yaml` names, or a package of such modules."""
    return module.partition(".")[0] == PACKAGE


# --- files ----------------------------------------------------------------------------------------


def _find(path: str) -> list[str]:
    """Return the modules of a file's or folder's plugins, after registering all of their files."""
    place = Path(path)
    if not (place.is_dir() or (place.suffix == ".py" and place.is_file())):
        raise FedstageError(f"config.yaml: plugins = {path!r}: no such Python file or folder")
    top = f"{PACKAGE}.{place.resolve().stem}"
    if any(f"{known}.".startswith(f"{top}.") for known in PLUGINS.files):
        raise FedstageError(
            f"config.yaml: plugins = {path!r}: another plugin has a file or folder of this name"
        )
    PLUGINS.files |= _modules(place, top) if place.is_dir() else {top: place}
    found = [top] if place.is_file() else [f"{top}.{file.stem}" for file in _of_folder(place)]
    if not found:
        raise FedstageError(f"config.yaml: plugins = {path!r}: has no Python file")
    return found


def _of_folder(folder: Path) -> list[Path]:
    """Return the plugins of a folder: its files except ones that begin with an underscore."""
    return sorted(file for file in folder.glob("*.py") if not file.name.startswith("_"))


def _modules(folder: Path, package: str) -> dict[str, Path]:
    """Return the file of each module of a package's folder."""
    found = {}
    for file in sorted(folder.rglob("*.py")):
        name = ".".join((package, *file.relative_to(folder).with_suffix("").parts))
        found[name.removesuffix(".__init__")] = file
    return found


def _installed() -> Iterator[tuple[str, str]]:
    """Yield the modules of entry points, with their names in messages."""
    for point in sorted(entry_points(group=GROUP)):
        shown = f"entry point {point.name} = {point.value}"
        top = point.module.partition(".")[0]
        spec = find_spec(top)
        if spec is None or spec.origin is None:
            raise FedstageError(f"{shown}: no package {top}")
        origin = Path(spec.origin)
        whole = spec.submodule_search_locations is not None
        PLUGINS.files |= _modules(origin.parent, top) if whole else {top: origin}
        yield point.module, shown


class _Finder(MetaPathFinder):
    """Finds the modules of files that `config.yaml` names."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if not _is_of_file(name):
            return None
        file = PLUGINS.files.get(name)
        if file is None:
            inside = any(known.startswith(f"{name}.") for known in PLUGINS.files)
            return ModuleSpec(name, None, is_package=True) if inside else None
        inner = [str(file.parent)] if file.name == "__init__.py" else None
        loader = _Loader(name, str(file))
        return spec_from_file_location(name, file, loader=loader, submodule_search_locations=inner)


class _Loader(SourceFileLoader):
    """Reads the source at every start, and leaves no compiled files in users' folders."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


sys.meta_path.append(_Finder())


# --- what they add --------------------------------------------------------------------------------


def _register(module: str, path: str) -> None:
    """Import a plugin and register its alternatives under their names."""
    file = _shown(module, path)
    try:
        import_module(module)
    except FedstageError:
        raise
    except Exception as error:  # any error in a user's file becomes one line
        told = f"{line_of_plugin(error)}{describe_error(error)}"
        raise FedstageError(f"{file}: cannot be imported: {told}") from error
    kinds = [kind for kind in choices() if f"{kind.__module__}.".startswith(f"{module}.")]
    if not kinds:
        raise FedstageError(
            f"{file}: no settings class: define one with the name of the method, such as "
            '`class Mine(LocalTraining)` with `name: Literal["mine"]`, or begin the name of a '
            "file that only others import with an underscore"
        )
    for kind in kinds:
        _enter(kind, file)


def _shown(module: str, path: str) -> str:
    return str(PLUGINS.files[module]) if _is_of_file(module) else path


def line_of_plugin(error: Exception) -> str:
    """Return the last line of a plugin in a traceback, ``mine.py, line 3: ``, or nothing."""
    files = {str(file) for file in PLUGINS.files.values()}
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f"{frame.filename}, line {frame.lineno}: " for frame in frames
             if frame.filename in files]  # fmt: skip
    return lines[-1] if lines else ""


def describe_error(error: Exception) -> str:
    """Return the kind of an error and its first line."""
    text = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _enter(kind: type[Choice], file: str) -> None:
    known = PLUGINS.choices.setdefault(kind.room, {})
    built_in = [one for one in choices() if one.__module__.startswith("fedstage.")]
    for name in kind.names():
        if not _NAME.fullmatch(name):
            raise FedstageError(f"{file}: name = {name!r}: must be letters, digits and underscores")
        if any(one.room == kind.room and name in one.names() for one in built_in):
            raise FedstageError(f"{file}: name = {name!r}: is the name of a built-in alternative")
        if name in known:
            other = PLUGINS.files[known[name].__module__]
            raise FedstageError(f"{file}: name = {name!r}: {other} has an alternative of this name")
    home = sys.modules[kind.__module__]
    if missing := [function for function in kind.functions if not hasattr(home, function)]:
        raise FedstageError(
            f"{file}: no {missing[0]}, which the module of {kind.__name__} must define"
            f"{suggest(missing[0], _defined(home))}"
        )
    for fault in faults_of(kind, home):
        raise FedstageError(f"{file}: {fault}")
    known.update(dict.fromkeys(kind.names(), kind))


def faults_of(kind: type[Choice], home: ModuleType) -> Iterator[str]:
    """Yield what is wrong with the functions and classes that implement an alternative."""
    for name, arguments in kind.functions.items():
        part = getattr(home, name)
        if isinstance(part, type):
            yield from hook_faults(part, kind, kind.declared)
        if fault := misfit(name, part, arguments):
            yield fault


def _defined(module: ModuleType) -> list[str]:
    """Return the functions and classes that a module defines, not those that it imports."""
    return [name for name, value in vars(module).items()
            if getattr(value, "__module__", None) == module.__name__]  # fmt: skip


def _rebuild() -> None:
    """Rebuild schemas of settings whose unions may have been built without plugins."""
    built = [kind for kind in subclasses(Settings) if kind.__pydantic_complete__]
    for kind in built:
        kind.__pydantic_complete__ = False
        if "__pydantic_core_schema__" in vars(kind):
            del kind.__pydantic_core_schema__  # else schemas of other classes contain it
    for kind in built:
        kind.model_rebuild()
