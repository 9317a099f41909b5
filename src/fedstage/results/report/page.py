"""The parts of the report in HTML, and the page around them."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from fedstage.results.tables import html

STYLE = r"""
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
  max-width: 1280px; margin: 2em auto; padding: 0 1.5em; }
h1 { font-size: 1.7em; line-height: 1.25; margin: 0 0 .2em; }
h2 { font-size: 1.3em; margin: 2em 0 .4em; padding-top: .6em; border-top: 1px solid #ccc; }
h3 { font-size: 1.05em; margin: 1.5em 0 .3em; }
a { color: #00528a; }
nav ul { columns: 2; padding-left: 1.2em; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15em 1.2em; margin: .6em 0; }
dt { color: #555; } dd { margin: 0; overflow-wrap: anywhere; }
code, pre { font: 13px/1.45 ui-monospace, monospace; }
pre { overflow-x: auto; background: #f6f6f6; padding: .6em .8em;
  margin: .4em 0; }
.wide { overflow-x: auto; }
.lines td { white-space: nowrap; }
.lines th, .lines td { padding: .3em .5em; }
table { border-collapse: collapse; margin: .8em 0; font-variant-numeric: tabular-nums; }
th, td { padding: .3em .8em; text-align: right; border-bottom: 1px solid #ddd;
  vertical-align: top; }
th { border-bottom: 2px solid #444; vertical-align: bottom; }
th[colspan] { text-align: center; border-bottom: 1px solid #444; }
.key { text-align: left; }
td a { text-decoration-style: dotted; text-underline-offset: 3px; }
th.sorts { cursor: pointer; }
th.sorts::after { content: " \2195"; color: #999; }
th[aria-sort=ascending]::after { content: " \2191"; color: #1a1a1a; }
th[aria-sort=descending]::after { content: " \2193"; color: #1a1a1a; }
ul.notes { color: #444; padding-left: 1.2em; }
details.folded { border: 1px solid #ddd; border-radius: 4px; margin: .4em 0; padding: .35em .8em; }
details.folded:target { border-color: #00528a; }
details.folded h3 { margin-top: .8em; }
summary { cursor: pointer; }
img { zoom: 1.5; max-width: 100%; }
@media print {
  body { max-width: none; margin: 0; padding: 0; font-size: 10pt; }
  th.sorts::after { display: none !important; content: none; }
  .wide { overflow: visible; } .lines td { white-space: normal; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; }
  h2 { break-after: avoid; } img, tr, dl { break-inside: avoid; }
}
"""

#: Sorts the lines of a table by a click on a head: by number, with its unit, or else by text.
SORTING = r"""
const UNITS = {B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12};
function valueOf(cell) {
  const text = cell.textContent.replace("\u2212", "-").trim();
  const found = /^[<+]?\s*(-?[\d.]+)\s*([kMGT]?B)?/.exec(text);
  return found ? Number(found[1]) * (UNITS[found[2]] ?? 1) : text === "\u2013" ? null : text;
}
function compare(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(b);
}
function sortBy(table, head) {
  const up = head.getAttribute("aria-sort") === "ascending" ? -1 : 1, body = table.tBodies[0];
  for (const one of head.parentNode.cells) one.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", up > 0 ? "ascending" : "descending");
  const lines = [...body.rows].map(row => [valueOf(row.cells[head.cellIndex]), row]);
  lines.sort(([a], [b]) => a === null || b === null ? compare(a, b) : up * compare(a, b));
  body.append(...lines.map(([, row]) => row));
}
for (const table of document.querySelectorAll("table"))
  for (const head of table.tHead.rows[table.tHead.rows.length - 1].cells) {
    head.classList.add("sorts");
    head.tabIndex = 0;
    head.onclick = () => sortBy(table, head);
    head.onkeydown = event => { if (event.key === "Enter") sortBy(table, head); };
  }
function open() {
  const found = document.getElementById(location.hash.slice(1))?.closest("details");
  if (found) { found.open = true; found.scrollIntoView(); }
}
addEventListener("hashchange", open);
open();
"""


@dataclass(frozen=True)
class Section:
    """A section of the page, named in the table of contents; its parts are HTML."""

    name: str  # of its anchor
    title: str
    parts: Sequence[str]


def render_page(title: str, lead: Sequence[str], sections: Sequence[Section]) -> str:
    """Return one document that needs no other file.

    `lead` are parts of HTML before the table of contents.
    """
    contents = "".join(
        f'<li><a href="#{section.name}">{escape(section.title)}</a></li>' for section in sections
    )
    body = [
        part
        for section in sections
        for part in (f'<h2 id="{section.name}">{escape(section.title)}</h2>', *section.parts)
    ]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>",
            f"<h1>{escape(title)}</h1>",
            *lead,
            f'<nav aria-label="Contents"><ul>{contents}</ul></nav>',
            *body,
            f"<script>{SORTING}</script>",
            "</body></html>",
            "",
        ]
    )


def picture(svg: bytes, caption: str) -> str:
    """Return a figure, in the page itself, with its caption."""
    source = f"data:image/svg+xml;base64,{b64encode(svg).decode()}"
    return f'<div class="wide"><img alt="{escape(caption)}" src="{source}"></div>\n' + (
        html.paragraph(caption)
    )


def facts(pairs: Mapping[str, str]) -> str:
    """Return names with their descriptions."""
    told = (f"<dt>{escape(name)}</dt><dd>{html.inline(text)}</dd>" for name, text in pairs.items())
    return f"<dl>{''.join(told)}</dl>"


def folded(name: str, title: str, parts: Sequence[str]) -> str:
    """Return parts that are unfolded by a click on their title; `name` is their anchor."""
    body = "\n".join(parts)
    return (
        f'<details class="folded" id="{name}"><summary>{escape(title)}</summary>\n{body}</details>'
    )


def preformatted(lines: Sequence[str]) -> str:
    """Return lines as preformatted text."""
    text = escape("\n".join(lines))
    return f"<pre>{text}</pre>"


def wide(table: str, *, lines: bool = False) -> str:
    """Return a table that can be scrolled if it is wider than the page.

    Cells break their text, so that the table is narrower, unless they are `lines`.
    """
    kind = "wide lines" if lines else "wide"
    return f'<div class="{kind}">{table}</div>'
