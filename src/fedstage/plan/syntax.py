"""The source of modules: a digest of the syntax tree, and the imported modules.

These facts are cached between calls by the digest of the module's file: parsing all modules takes
half a second, as long as everything else before a short plan.
"""

import ast
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from fedstage.errors import FedstageError
from fedstage.settings.registry import PLUGINS


def cache_folder() -> Path:
    """Return the folder of the user's cached files."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fedstage"


def key_of(module: str, *contents: bytes) -> str:
    """Return the name under which facts about a module with these contents are kept.

    Python's version is part of it: the syntax trees of versions differ.
    """
    digest = hashlib.sha256(f"{sys.version_info[:2]} {module}".encode())
    for content in contents:
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()


def recall(key: str) -> list[str] | None:
    """Return the lines kept under a key, None if there are none or the file was cut off."""
    try:
        lines: list[str] = json.loads((cache_folder() / "source" / key).read_text())
    except (OSError, ValueError):
        return None
    return lines


def remember(key: str, lines: list[str]) -> None:
    """Keep lines under a key, unless the folder cannot be written to."""
    folder = cache_folder() / "source"
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f".{key}.{os.getpid()}.tmp"
        # With the user's umask, which `tempfile` ignores.
        temporary.write_text(json.dumps(lines))
        temporary.replace(folder / key)  # at once, since others may read it meanwhile


#: The folder of the package; tests read changed copies.
PACKAGE = Path(__file__).parent.parent

_ONLY_FOR_TYPES = ("TYPE_CHECKING", "typing.TYPE_CHECKING")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Code:
    """A digest of code, the names of the package that it uses, in full, and its attributes."""

    digest: str
    names: frozenset[str]
    attributes: frozenset[str]


@dataclass(frozen=True)
class Source:
    """A module: its code as a whole, what its imports name, and its definitions.

    Definitions are functions, classes and values by their names, and members of classes by
    ``Class.member``. `imported` maps names in the module to the full names that they stand for in
    the package.
    """

    code: Code
    named: frozenset[str]  # modules of the package or others, and names in them, that it imports
    imported: Mapping[str, str]
    definitions: Mapping[str, Code]


_SOURCE = TypeAdapter(Source)


def module_digest(module: str, package: Path = PACKAGE) -> str:
    """Return the SHA-256 of a module's syntax tree without docstrings."""
    return source(module, package).code.digest


@cache
def imports(module: str, package: Path = PACKAGE) -> frozenset[str]:
    """Return the modules of the package that a module imports, at its top or inside functions.

    Importing a module also imports its packages, whose ``__init__`` runs. Imports under ``if
    TYPE_CHECKING`` do not count.
    """
    known = modules(package).keys()
    inside = source(module, package).named & known
    return frozenset(inside | (parents(inside) & known))


@cache
def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """Return the file of each module of the package, and of plugins."""
    found = dict(PLUGINS.files)
    for path in package.rglob("*.py"):
        names = ("fedstage", *path.relative_to(package).with_suffix("").parts)
        found[".".join(names).removesuffix(".__init__")] = path
    return found


@cache
def source(module: str, package: Path = PACKAGE) -> Source:
    """Return the code, imports and definitions of a module."""
    path = modules(package).get(module)
    if path is None:
        raise FedstageError(f"{module}: no such module in {package}")
    content = path.read_bytes()
    key = key_of(module, content, _this_file())
    lines = recall(key)
    if lines:
        return _SOURCE.validate_json(lines[0])
    found = _found_out(module, path, content)
    remember(key, [_SOURCE.dump_json(found).decode()])
    return found


@cache
def _this_file() -> bytes:
    return Path(__file__).read_bytes()


def _found_out(module: str, path: Path, content: bytes) -> Source:
    """Return what there is to know about a module."""
    tree = ast.parse(content, str(path))
    home = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found = [pair for node in import_statements(tree) for pair in _imported(node, home)]
    named = frozenset(name for _, name in found)
    imported = {key: name for key, name in found if key and name.startswith("fedstage.")}
    own = {name: f"{module}.{name}" for name, _ in _definitions(tree) if "." not in name}
    known = imported | own
    definitions = {name: _code(node, known) for name, node in _definitions(tree)}
    return Source(_code(tree, known), named, imported, definitions)


def _code(node: Any, known: Mapping[str, str]) -> Code:
    """Return the digest of a tree, the known names that it uses, and attributes."""
    names, attributes = set(), set()
    for part in _behaviour(node):
        if isinstance(part, ast.Attribute):
            attributes.add(part.attr)
            if isinstance(part.value, ast.Name) and part.value.id in known:
                names.add(f"{known[part.value.id]}.{part.attr}")
        elif isinstance(part, ast.Name) and part.id in known:
            names.add(known[part.id])
    digest = hashlib.sha256(_text(node).encode()).hexdigest()
    return Code(digest, frozenset(names), frozenset(attributes))


def _behaviour(node: Any) -> Iterator[ast.AST]:
    """Yield the nodes of a tree, less the annotations of arguments and results."""
    for part in node if isinstance(node, list) else [node]:
        yield part
        for name, value in ast.iter_fields(part):
            if name not in ("annotation", "returns"):
                children = value if isinstance(value, list) else [value]
                yield from _behaviour([child for child in children if isinstance(child, ast.AST)])


def _definitions(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    """Yield the names and trees of definitions: for a class, its head and each of its members."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name, [*node.bases, *node.keywords, *node.decorator_list]
            for member in node.body:
                yield from ((f"{node.name}.{name}", member) for name in _names_of(member))
        else:
            yield from ((name, node) for name in _names_of(node))


def _names_of(node: ast.stmt) -> list[str]:
    """Return the names that a statement defines, none if it imports or only names types."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return [node.name]
        case ast.Assign(value=ast.Subscript() | ast.BinOp(op=ast.BitOr())):
            return []
        case ast.Assign():
            return [target.id for target in node.targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)) if "ClassVar" in ast.unparse(node.annotation):
            return [name]
    return []


def parents(names: Iterable[str]) -> set[str]:
    """Return the packages that modules are in."""
    found = set()
    for name in names:
        while "." in name:
            name = name.rpartition(".")[0]
            found.add(name)
    return found


def _text(node: Any) -> str:
    """Return the text of a syntax tree without descriptions and positions.

    Unlike `ast.dump` it omits empty fields, so that it is the same in versions of Python whose
    trees differ in such fields.
    """
    if isinstance(node, list):
        return f"[{','.join(map(_text, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = ((name, _field(node, name)) for name in node._fields)
    written = (f"{name}={_text(value)}" for name, value in fields if value not in (None, []))
    return f"{type(node).__name__}({','.join(written)})"


def _field(node: ast.AST, name: str) -> Any:
    """Return a field of a node, a body without its docstring."""
    value = getattr(node, name, None)
    if name != "body" or not isinstance(node, _DOCUMENTED):
        return value
    match value:
        case [ast.Expr(ast.Constant(str())), *code]:
            return code
    return value


def import_statements(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports below a node that are executed at run time."""
    children: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.If) and ast.unparse(node.test) in _ONLY_FOR_TYPES:
        children = node.orelse
    for child in children:
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from import_statements(child)


def _imported(node: ast.Import | ast.ImportFrom, home: str) -> Iterator[tuple[str, str]]:
    """Yield the modules, and names in them, that a statement in package `home` may import.

    Each has before it the local name that it is given; modules have none.
    """
    if isinstance(node, ast.Import):
        yield from (("", alias.name) for alias in node.names)
        return
    origin = resolve_name("." * node.level + (node.module or ""), home)
    yield "", origin
    yield from ((alias.asname or alias.name, f"{origin}.{alias.name}") for alias in node.names)
