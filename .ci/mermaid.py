"""For the site (a hook of mkdocs): diagrams are drawn when it is built, so pages load no script."""

import re
from itertools import count
from typing import Any

from mermaidx import Diagram

BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put an SVG in the place of each block of Mermaid; names of its styles are its own."""
    number = count()

    def draw(found: re.Match[str]) -> str:
        drawn = Diagram(found[1]).svg().replace("my-svg", f"diagram-{next(number)}")
        return f'<div class="diagram">{drawn}</div>'

    return BLOCK.sub(draw, markdown)
