"""The source of modules: a digest of the syntax tree, and the imported modules."""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.plan.remembered import key_of, recall, remember

#: The folder of the package; tests read changed copies.
PACKAGE = Path(__file__).parent.parent

_ONLY_FOR_TYPES = ("TYPE_CHECKING", "typing.TYPE_CHECKING")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Source:
    """The digest of a module's code, and the modules of the package that it imports."""

    digest: str
    imports: frozenset[str]


def module_digest(module: str, package: Path = PACKAGE) -> str:
    """Return the SHA-256 of a module's syntax tree without docstrings."""
    return _source(module, package).digest


def imports(module: str, package: Path = PACKAGE) -> frozenset[str]:
    """Return the modules of the package that a module imports, at its top or inside functions.

    With a module its packages are imported, whose ``__init__`` runs. Imports under
    ``if TYPE_CHECKING`` do not count.
    """
    return _source(module, package).imports


@cache
def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """Return the file of each module of the package."""
    found = {}
    for path in package.rglob("*.py"):
        names = ("fedstage", *path.relative_to(package).with_suffix("").parts)
        found[".".join(names).removesuffix(".__init__")] = path
    return found


@cache
def _source(module: str, package: Path) -> Source:
    path = modules(package).get(module)
    if path is None:
        raise FedstageError(f"{module}: no such module in {package}")
    content = path.read_bytes()
    key = key_of(module, content, _this_file())
    lines = recall(key)
    if not lines:
        lines = _found_out(module, path, content)
        remember(key, lines)
    digest, *named = lines
    inside = set(named) & modules(package).keys()
    return Source(digest, frozenset(inside | parents(inside)))


@cache
def _this_file() -> bytes:
    return Path(__file__).read_bytes()


def _found_out(module: str, path: Path, content: bytes) -> list[str]:
    """Return the digest of a module's code, and all names that it imports or may import."""
    tree = ast.parse(content, str(path))
    home = module if path.name == "__init__.py" else module.rpartition(".")[0]
    named = {name for node in _import_statements(tree) for name in _imported(node, home)}
    return [hashlib.sha256(_text(tree).encode()).hexdigest(), *sorted(named)]


def parents(names: Iterable[str]) -> set[str]:
    """Return the packages that modules are in."""
    found = set()
    for name in names:
        while "." in name:
            name = name.rpartition(".")[0]
            found.add(name)
    return found


def _text(node: Any) -> str:
    """Return the text of a syntax tree without docstrings and positions.

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


def _import_statements(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports below a node that are executed at run time."""
    children: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.If) and ast.unparse(node.test) in _ONLY_FOR_TYPES:
        children = node.orelse
    for child in children:
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _import_statements(child)


def _imported(node: ast.Import | ast.ImportFrom, home: str) -> Iterator[str]:
    """Yield the modules, and names in them, that a statement in package `home` may import."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    origin = resolve_name("." * node.level + (node.module or ""), home)
    yield origin
    yield from (f"{origin}.{alias.name}" for alias in node.names)
