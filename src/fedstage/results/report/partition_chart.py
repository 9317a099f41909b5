"""The chart of partitions: a bubble for each client and class, as in the figure for print."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from fedstage.results.figures.looks import COLOURS
from fedstage.results.figures.names import Names, name_of
from fedstage.results.figures.partition import legend_samples, tick_names
from fedstage.results.report.charts import Spec, document


def partition_spec(histograms: Mapping[str, pd.DataFrame], names: Names) -> Spec:
    """Return partitions over clients: one bubble per client and class, by the partition's label.

    `histograms` are as `fedstage.results.figures.partition.read_histogram` returns them.
    """
    values = [_bubble(label, row, names) for label, frame in histograms.items()
              for row in frame.to_dict("records")]  # fmt: skip
    clients, classes = (1 + max(int(row[key]) for row in values) for key in ("client", "class"))
    across, down = _cell(clients, 1100 if len(histograms) == 1 else 340), _cell(classes, 420)
    spec = {
        "mark": {"type": "circle", "opacity": 0.75, "color": COLOURS[0]},
        "width": across * clients,
        "height": down * classes,
        "encoding": {
            "x": _numbered("client", "Client", tick_names(clients, names.clients)),
            "y": _numbered("class", "Class", tick_names(classes, names.classes))
            | {"sort": "descending"},  # upwards, as in print
            "size": {
                "field": "samples",
                "type": "quantitative",
                "title": "Samples",
                "scale": {"range": [2, max(30, (1.3 * min(across, down)) ** 2)]},
                "legend": {"values": legend_samples(max(row["samples"] for row in values))},
            },
            "tooltip": [
                {"field": "client_name", "title": "Client"},
                {"field": "class_name", "title": "Class"},
                {"field": "samples", "title": "Samples", "format": ","},
            ],
        },
    }
    return document(values, spec, len(histograms))


def _bubble(label: str, row: Mapping[Any, Any], names: Names) -> dict[str, Any]:
    client, kind = int(row["client"]), int(row["label"])
    return {
        "facet": label, "client": client, "class": kind, "samples": int(row["samples"]),
        "client_name": name_of(client, names.clients), "class_name": name_of(kind, names.classes),
    }  # fmt: skip


def _numbered(field: str, title: str, names: Sequence[str] | None) -> Spec:
    """Return the encoding of numbers, with names at the ticks if there are any."""
    axis: Spec = {"labelOverlap": True, "labelAngle": 0}
    if names is not None:
        angle = -90 if field == "client" else 0
        axis = {"labelExpr": f"{json.dumps(names)}[datum.value]", "labelAngle": angle}
    return {"field": field, "type": "ordinal", "title": title, "axis": axis}


def _cell(count: int, most: int) -> float:
    """Return the pixels per client or class, so that all take at most `most`."""
    return min(26.0, max(2.0, most / count))
