"""What pages of the documentation name exists: files, links, headings and commands."""

import re
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name

import pytest

import fedstage
import fedstage.results
from fedstage.execution.cli import COMMANDS
from fedstage.plan.stages import STAGES

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob(".github/*.md"),
        *ROOT.glob("workflow/**/*.md"),
        *ROOT.glob("results/*.md"),
    ],
)
#: Where the path of a file may start.
STARTS = [
    ROOT,
    *(ROOT / part for part in ("src/fedstage", "src/fedstage/algorithm", "workflow", "tests")),
]
#: Files of the reader's own project, or that a run makes.
READERS = re.compile(r"^(results|config|data|my_methods)/")
CODE = re.compile(r"`([^`\n]+)`|^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
FILE = re.compile(r"[\w./-]+/[\w.-]+\.(?:py|smk|yaml|md|csv)")
COMMAND = re.compile(r"^(?:uv run )?fedstage ([a-z][\w-]*)", re.MULTILINE)


def codes(text: str) -> Iterator[str]:
    """Return the code of a page, in lines and in blocks."""
    for inline, block in CODE.findall(text):
        yield inline or block


def files_named(text: str) -> Iterator[str]:
    """Return the files with a folder that code in a page names, without names to be filled in."""
    for code in codes(text):
        if FILE.fullmatch(code) and not re.search(r"[A-Z]{2}", code) and not READERS.match(code):
            yield code


def anchors(text: str) -> set[str]:
    """Return the anchors of a page: those of headings as GitHub makes them, and its own."""
    heads = re.findall(r"^#+ +(.+)$", text, re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", head).lower() for head in heads)
    made = {re.sub(r"[^\w\- ]", "", head).strip().replace(" ", "-") for head in plain}
    return made | set(re.findall(r'<a id="([^"]+)">', text))


def broken(page: Path, target: str) -> bool:
    """Return whether a link leads to no file or no heading of the repository."""
    name, _, anchor = target.partition("#")
    found = (page.parent / name).resolve() if name else page
    if not found.exists():
        return True
    return bool(anchor) and found.suffix == ".md" and anchor not in anchors(found.read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_exists(page: Path) -> None:
    text = page.read_text()
    lost = [name for name in files_named(text) if not any((at / name).exists() for at in STARTS)]
    links = [to for to in LINK.findall(text) if not re.match(r"[a-z]+:", to) and broken(page, to)]
    called = [name for code in codes(text) for name in COMMAND.findall(code)]
    commands = [name for name in called if name not in {*COMMANDS, *STAGES, "run"}]
    assert (lost, links, commands) == ([], [], [])


def test_files_that_comments_and_docstrings_name_exist() -> None:
    lost = []
    for source in (*ROOT.glob("src/**/*.py"), *ROOT.glob("workflow/rules/*.smk")):
        lost += [
            f"{source.relative_to(ROOT)}: {name}"
            for name in files_named(source.read_text())
            if not any((at / name).exists() for at in [source.parent, *STARTS])
        ]
    assert lost == []


def test_what_pages_call_public_can_be_imported() -> None:
    running = (ROOT / "workflow/docs/running.md").read_text()
    stable = re.search(r"Public are: (.+?);", running)
    assert stable
    functions = {name.removeprefix("fedstage.") for name in re.findall("`(.+?)`", stable[1])}
    assert functions == {*fedstage.__all__, "results"}
    rows = re.findall(
        r"^\| .+? \| `(\w+)\.(\w+)` \| .+? \| `(.+?)` \|",
        (ROOT / "workflow/docs/extending.md").read_text(),
        re.MULTILINE,
    )
    assert len(rows) > 10
    for module, name, described in rows:
        assert resolve_name(f"fedstage.settings.{module}:{name}").__doc__
        assert (ROOT / "src/fedstage" / described).exists()
    for package in (fedstage, fedstage.results):
        assert all(hasattr(package, name) for name in package.__all__)
    with pytest.raises(AttributeError, match="nowhere"):
        _ = fedstage.nowhere


def test_what_does_not_exist_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A heading, here\n\n`plan/nowhere.py` [a](other.md)\n```bash\nfedstage x\n```\n"
    )
    assert [COMMAND.findall(code) for code in codes(page.read_text())] == [[], ["x"]]
    assert list(files_named(page.read_text())) == ["plan/nowhere.py"]
    assert broken(page, "other.md")
    assert broken(page, "#elsewhere")
    assert not broken(page, "#a-heading-here")
