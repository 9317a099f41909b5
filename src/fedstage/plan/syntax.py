"""The source of modules: a digest of the syntax tree, and the imported modules.

``MODULE:FUNCTION`` is the part of a module that a function of it needs: several stages may share a
file, but not their source.

These facts are cached between calls by the digest of the module's file: parsing all modules takes
half a second, as long as everything else before a short plan.
"""

import ast
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

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

#: How facts are found is part of the key under which they are kept.
_THIS_FILE = Path(__file__).read_bytes()
_ONLY_FOR_TYPES = ("TYPE_CHECKING", "typing.TYPE_CHECKING")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def module_digest(module: str, package: Path = PACKAGE) -> str:
    """Return the SHA-256 of a module's syntax tree without docstrings."""
    return facts(module, package)[0]


@cache
def imports(module: str, package: Path = PACKAGE) -> frozenset[str]:
    """Return the modules of the package that a module imports, at its top or inside functions.

    Importing a module also imports its packages, whose ``__init__`` runs. Imports under ``if
    TYPE_CHECKING`` do not count.
    """
    known = modules(package).keys()
    inside = known & facts(module, package)[1:]
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
def facts(module: str, package: Path = PACKAGE) -> list[str]:
    """Return a module's digest, and the modules, and names in them, that it imports."""
    name, _, function = module.partition(":")
    path = modules(package).get(name)
    if path is None:
        raise FedstageError(f"{module}: no such module in {package}")
    content = path.read_bytes()
    key = key_of(module, content, _THIS_FILE)
    found = recall(key)
    if not found:
        tree = ast.parse(content, str(path))
        if function:
            tree.body = needed_by(function, tree.body)
        home = name if path.name == "__init__.py" else name.rpartition(".")[0]
        named = {name for node in import_statements(tree) for name in _imported(node, home)}
        found = [hashlib.sha256(_text(tree).encode()).hexdigest(), *sorted(named)]
        remember(key, found)
    return found


def needed_by(function: str, body: Iterable[ast.stmt]) -> list[ast.stmt]:
    """Return the statements at the top of a module that a function needs, in their order.

    These are the definitions and imports of names that it uses, of names that those use, and so on;
    and every statement that defines no name.
    """
    defining = [(one, _defined(one)) for statement in body for one in _by_name(statement)]
    found: list[ast.stmt] = []
    used = {function}
    while True:
        kept = [one for one, names in defining if not names or names & used]
        if len(kept) == len(found):
            return kept
        found = kept
        used |= {node.id for one in kept for node in ast.walk(one) if isinstance(node, ast.Name)}


def _by_name(statement: ast.stmt) -> Iterator[ast.stmt]:
    """Yield a statement, or an import as a statement for each name."""
    if isinstance(statement, ast.Import):
        yield from (ast.Import([alias]) for alias in statement.names)
    elif isinstance(statement, ast.ImportFrom):
        origin = (statement.module, statement.level)
        yield from (ast.ImportFrom(origin[0], [one], origin[1]) for one in statement.names)
    else:
        yield statement


def _defined(statement: ast.stmt) -> set[str]:
    """Return the names that a statement at the top of a module defines, none of a compound one."""
    match statement:
        case ast.Import(names) | ast.ImportFrom(names=names):
            return {alias.asname or alias.name.partition(".")[0] for alias in names} - {"*"}
        case ast.FunctionDef(name) | ast.ClassDef(name):
            return {name}
        case ast.Assign() | ast.AnnAssign():
            named = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
            return {node.id for node in named if isinstance(node.ctx, ast.Store)}
    return set()


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


def _imported(node: ast.Import | ast.ImportFrom, home: str) -> Iterator[str]:
    """Yield the modules, and names in them, that a statement in package `home` may import."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    origin = resolve_name("." * node.level + (node.module or ""), home)
    yield from (origin, *(f"{origin}.{alias.name}" for alias in node.names))
