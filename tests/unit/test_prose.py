"""Docstrings, comments, messages and documents are plain technical English."""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: What is not written, and what stands in its place.
INSTEAD = {
    r"those of": "repeat the noun, or use the genitive ('the weights of', 'the server's')",
    r"that nobody": "a passive ('that is never read'), or 'unused'",
    r"beside": "'next to', 'in addition to', 'with' or 'as well as'",
    r"anew": "'again', or 'recomputed', 'redrawn', 'rerun'",
    r"in vain": "'without effect', 'unsuccessfully' or 'unnecessarily'",
    r"whoever": "'code that', 'a caller that' or 'users who'",
    r"be it": "'whether ... or ...'",
    r"(?:an?|one) (?:row|line|file|column|point|cell|facet|dot|output|weight|prototype|folder)"
    r" an?": "'one row per ...'",
    r"(?:file|model|stage|rule|log|table|figure|setting|code|plan|graph|record|caption|name)s?"
    r" (?:says?|hears?|speaks?|knows?|tells?)": "'has', 'names', 'gives', 'shows' or 'records'",
    r"slots?": "'participant'",
}
#: Ends a line (with `#` or `<!-- -->` around it) whose phrase is meant.
MEANT = "prose: ok"

PATTERNS = {
    re.compile(rf"\b{phrase}\b".replace(" ", r"\s+"), re.IGNORECASE): instead
    for phrase, instead in INSTEAD.items()
}
#: An f-string is one token before Python 3.12, and several from then on.
PROSE_TOKENS = {
    tokenize.COMMENT,
    tokenize.STRING,
    getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING),
}
#: What makes a comment of a text, or a literal.
SYNTAX = re.compile(r"#|(?:\b[rf])?[\"']")
#: Stands for code, so that prose before and after it is not read as one sentence.
CODE = "\0"


def python_prose(source: str) -> str:
    """The comments and string literals of `source`, all at their own lines."""
    lines = source.splitlines(keepends=True)
    masked = [list(re.sub(r"\S", CODE, line)) for line in lines]
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in PROSE_TOKENS:
            continue
        (first, start), (last, end) = token.start, token.end
        for row in range(first, last + 1):
            left = start if row == first else 0
            right = end if row == last else len(lines[row - 1])
            text = lines[row - 1][left:right]
            masked[row - 1][left:right] = SYNTAX.sub(lambda found: " " * len(found[0]), text)
    return without_code("".join(map("".join, masked)))


def markdown_prose(source: str) -> str:
    """`source` without code, links' targets and anchors, all at its own lines."""
    return without_code(source, r"^ *```.*?^ *```", r"\]\([^)\n]+\)", r"<a [^>\n]+>")


#: Comments of a configuration file or of rules, and the texts that it shows to people.
TOLD = re.compile(
    r"(?:^|\s)#.*"
    r"|^( *)(?:- )?(?:\w+: )?>-\n(?:\1 +\S.*\n)+"
    r"|^\s*(?:- )?(?:title|text|note|label):.*",
    re.MULTILINE,
)


def configured_prose(source: str) -> str:
    """The comments, titles and texts of YAML or of rules, all at their own lines."""
    masked = list(re.sub(r"\S", CODE, source))
    for found in TOLD.finditer(source):
        masked[slice(*found.span())] = re.sub(r"#", " ", found[0])
    return without_code("".join(masked))


def without_code(prose: str, *others: str) -> str:
    """Mask inline code, and `others`, in a text."""
    return re.sub(
        "|".join([*others, r"`[^`\n]+`"]),
        lambda code: re.sub(r"[^\n]", CODE, code[0]),
        prose,
        flags=re.MULTILINE | re.DOTALL,
    )


def findings(prose: str, source: str) -> Iterator[tuple[int, str, str]]:
    """Line, phrase and suggestion for each unwanted phrase in `prose`."""
    lines = source.splitlines()
    for pattern, instead in PATTERNS.items():
        for match in pattern.finditer(prose):
            line = prose.count("\n", 0, match.start())
            if MEANT not in lines[line]:
                yield line + 1, " ".join(match[0].split()), instead


def test_prose_is_plain() -> None:
    readers = {
        python_prose: (ROOT / "src" / "fedstage").rglob("*.py"),
        markdown_prose: [ROOT / "README.md", *(ROOT / "workflow" / "docs").rglob("*.md")],
        configured_prose: [
            ROOT / "Snakefile",
            ROOT / "workflow" / "Snakefile",
            ROOT / "config.yaml",
            ROOT / "workflow" / "methods.yaml",
            *(ROOT / "workflow" / "rules").glob("*.smk"),
            *(ROOT / "workflow").glob("**/experiments/*.yaml"),
            *(ROOT / "workflow").glob("papers/*/*.yaml"),
            *(ROOT / "workflow").glob("profiles/*/*.yaml"),
            *(ROOT / "workflow").glob("project/*/*.yaml"),
        ],
    }
    found = [
        f"{path.relative_to(ROOT)}:{line}: {phrase!r}: write {instead}"
        for reader, paths in readers.items()
        for path in sorted(paths)
        for source in [path.read_text(encoding="utf-8")]
        for line, phrase, instead in findings(reader(source), source)
    ]
    assert not found, "\n" + "\n".join(found)


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 600


def test_phrases_are_found_across_lines_but_not_in_code() -> None:
    source = (
        "# a file\n# says\nslot = '`slot`'  # a slot\n"
        "beside = ('In '\n  f'vain')\n# slot, prose: ok\n"
    )
    found = {(line, phrase) for line, phrase, _ in findings(python_prose(source), source)}
    assert found == {(1, "file says"), (3, "slot"), (4, "In vain")}
    rule = "rule a: # a\n  # slot\n  slot: 1\n  title: a slot # one\n"
    assert [line for line, *_ in findings(configured_prose(rule), rule)] == [2, 4]
    claim = "- id: slot\n  text: >-\n    One slot is in\n    vain.\n  place: a slot\n"
    assert [line for line, *_ in findings(configured_prose(claim), claim)] == [3, 3]
    page = "```\nslot\n```\n[text](#slot) `slot`, a slot\nslot <!-- prose: ok -->\n"
    assert [line for line, *_ in findings(markdown_prose(page), page)] == [4]
