"""Stage `forgetting`: the files that still contain forgotten clients, as a table."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from fedstage.results.tables.columns import TextTable
from fedstage.results.tables.documents import write_document
from fedstage.results.tables.exact import write_csv
from fedstage.settings.base import Count, Settings
from fedstage.settings.validation import validate
from fedstage.storage.files import load_json


class ListedTrace(Settings):
    """A file with information about a client, as `fedstage.experiments.unlearning` lists it."""

    client: Count
    contains: str
    files: str


class Traces(Settings):
    """The traces of an experiment at a scale."""

    experiment: str
    scale: str
    title: str
    traces: Annotated[list[ListedTrace], Field(min_length=1)]


def forgetting(*, traces: Path, markdown: Path, csv: Path) -> None:
    """Write a row for each client and file, or pattern of files."""
    known = validate(Traces, load_json(traces), str(traces))
    source = (
        "what other files of this configuration still contain of the clients that its aggregators "
        "have forgotten."
    )
    lines = [[str(trace.client), trace.contains, f"`{trace.files}`"] for trace in known.traces]
    table = TextTable(["Client", "Contains", "Files"], lines, 3, [], compact=3)
    write_document(known, source, [table], markdown=markdown)
    write_csv(csv, [trace.model_dump() for trace in known.traces])
