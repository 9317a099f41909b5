"""Pages as notebooks: `uv run python .ci/notebook.py`."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbformat import v4, writes

DOCS = Path(__file__).resolve().parents[1] / "workflow/docs"
PAGES = ("tutorial", "coming_from_pytorch")
#: A block of code, at the start of lines: its language and its content.
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def cells(page: str) -> Iterator[Any]:
    """Yield the cells of a page: commands and files can run, what is printed is their output."""
    *parts, rest = BLOCK.split(page)
    for prose, language, content in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        if prose.strip():
            yield v4.new_markdown_cell(prose.strip())
        if language == "text":
            yield v4.new_output("stream", name="stdout", text=content)
        else:
            yield cell(language, content.strip())
    yield v4.new_markdown_cell(rest.strip())


def cell(language: str, content: str) -> Any:
    """Return a block as a cell that runs its commands, writes its file, or only shows it."""
    if language == "bash":
        return v4.new_code_cell(f"%%bash\n{content}")
    if named := re.match(r"# (\S+\.\w+)\n", content):
        return v4.new_code_cell(f"%%writefile {named[1]}\n{content}")
    if language == "python":
        return v4.new_code_cell(content)
    return v4.new_markdown_cell(f"```{language}\n{content}\n```")


def notebook(page: str) -> str:
    """Return a page as a notebook, with the same bytes each time: cells are named by number."""
    made: list[Any] = [v4.new_code_cell("%cd ../..")]
    for part in cells(page):
        if "output_type" in part:
            made[-1].outputs.append(part)
        else:
            made.append(part)
    for number, part in enumerate(made):
        part.id = f"cell-{number}"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return writes(v4.new_notebook(cells=made, metadata={"kernelspec": kernel})) + "\n"


if __name__ == "__main__":
    for name in PAGES:
        page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
        (DOCS / f"{name}.ipynb").write_text(notebook(page), encoding="utf-8")
