"""The house: rooms of the package, and the one direction in which they import."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import fedstage
from fedstage.plan.syntax import import_statements

PACKAGE = Path(fedstage.__file__).parent

#: From the ground up: a room imports from those before it, and from itself.
ROOMS = (
    "protocol",
    "settings",
    "plan",
    "storage",
    "data",
    "training",
    "models",
    "algorithm",
    "results",
    "experiments",
    "stages",
    "execution",
    "python",
)
#: Small files that every room may import.
GROUND = ("errors", "randomness", "weights")
#: The rooms of `algorithm`, as they follow one another in a round.
ALGORITHM = (
    "exchange",
    "secure",
    "local_trainers",
    "aggregation",
    "discriminators",
    "ensemble_trainers",
    "global_trainers",
    "one_shot",
    "measures",
)


def imported(path):
    """Return the modules that a file imports at run time, wherever its imports stand."""
    for node in import_statements(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            assert not node.level, f"{path}: relative import"
            module = node.module or ""
            yield from (f"{module}.{alias.name}" for alias in node.names)


def edges(folder, prefix):
    """Yield each import of a module of another room below a folder: file, its room, the other."""
    for path in sorted(folder.rglob("*.py")):
        here = path.relative_to(folder).parts[0].removesuffix(".py")
        for module in imported(path):
            if module.startswith(f"{prefix}."):
                room = module.removeprefix(f"{prefix}.").partition(".")[0]
                if room != here:
                    yield path.relative_to(folder).as_posix(), here, room


def upwards(folder, prefix, order):
    places = {room: number for number, room in enumerate(order)}
    return [
        f"{file} imports {other}"
        for file, here, other in edges(folder, prefix)
        if here in places and other in places and places[other] > places[here]
    ]


def test_every_module_lies_in_a_room():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    files = {path.stem for path in PACKAGE.glob("*.py")}
    assert folders == set(ROOMS)
    assert files == {"__init__", *GROUND}


def test_no_import_runs_back_up():
    assert upwards(PACKAGE, "fedstage", (*GROUND, *ROOMS)) == []


def test_an_algorithm_reads_from_top_to_bottom():
    folders = {path.parent.name for path in (PACKAGE / "algorithm").glob("*/__init__.py")}
    assert folders == set(ALGORITHM)
    found = upwards(PACKAGE / "algorithm", "fedstage.algorithm", ALGORITHM)
    assert not list(found)


def test_an_import_upwards_is_found(tmp_path):
    (tmp_path / "plan").mkdir()
    text = "def f():\n    from fedstage.stages import call\n    import fedstage.settings.base\n"
    (tmp_path / "plan/a.py").write_text(text)
    assert upwards(tmp_path, "fedstage", ROOMS) == ["plan/a.py imports stages"]


def graph(folder):
    """Return which modules each module imports."""
    names = {
        ".".join(("fedstage", *path.relative_to(folder).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): path
        for path in folder.rglob("*.py")
    }

    def known(module):
        parent = module.rpartition(".")[0]
        return module if module in names else parent if parent in names else None

    return {
        name: {known(one) for one in imported(path)} - {None, name} for name, path in names.items()
    }


def test_no_modules_import_each_other_in_a_circle():
    TopologicalSorter(graph(PACKAGE)).prepare()  # raises CycleError, which names the circle


def test_rooms_of_tests_are_those_of_the_package():
    tests = Path(__file__).parent
    for path in tests.rglob("test_*.py"):
        room = path.relative_to(tests).parent
        assert (PACKAGE / room).is_dir(), f"{path}: no room of this name"


def test_long_files_say_why():
    for path in PACKAGE.rglob("*.py"):
        lines = path.read_text().splitlines()
        if len(lines) > 300:
            head = " ".join(lines[:12])
            assert "One file because" in head, f"{path}: {len(lines)} lines"
