"""Charts as Vega-Lite specifications: plain data, which the page draws."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from fedstage.results.figures.looks import COLOURS
from fedstage.results.figures.names import Names, name_of
from fedstage.results.figures.partition import legend_samples
from fedstage.results.figures.placing import FACET, LINE, line_axis, placed
from fedstage.results.runs_file import SEED
from fedstage.results.tables.labels import METRICS
from fedstage.results.tables.runs import RUN, last_rounds
from fedstage.settings.scores import Metric

Spec = dict[str, Any]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_MOST_SEEDS = 6000  # values; with more, only means are drawn
_FACETS_A_ROW = 3
_CONFIG = {
    "font": "system-ui, sans-serif",
    "axis": {
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 260,
    },
    "legend": {"labelFontSize": 12, "labelLimit": 260, "symbolOpacity": 1},
    "header": {"labelFontSize": 12, "labelLimit": 330, "title": None},
    "view": {"stroke": "#bbb"},
}


def curves_spec(
    frame: pd.DataFrame, axes: Sequence[str], metric: Metric, lines: Sequence[str]
) -> Spec | None:
    """Return accuracy, or another metric, over rounds; None if no run is evaluated more than once.

    `frame` are runs as `read_runs` returns them, with labels for people. Of the table's axes
    `line_axis(lines)` has the lines, all others the facets. Thin lines are single seeds.
    """
    frame = placed(frame, line_axis(lines), axes)
    frame = frame[frame.groupby(RUN)["round"].transform("size") > 1]
    if frame.empty:
        return None
    seeds = frame[SEED].nunique() > 1 and len(frame) <= _MOST_SEEDS
    values = [*_means(frame, metric), *(_seeds(frame, metric) if seeds else [])]
    mean = {"transform": [{"filter": "datum.seed === null"}]}
    single = {"transform": [{"filter": "datum.seed !== null"}]}
    chosen = {"condition": {"param": "chosen", "value": 1}, "value": 0.12}
    faint = {"condition": {"param": "chosen", "value": 0.35}, "value": 0.05}
    line = mean | {"mark": {"type": "line", "strokeWidth": 2}, "params": [_BY_LEGEND]}
    points = mean | {"mark": {"type": "point", "filled": True, "size": 45}}
    tooltip = _tooltip(metric, ["round", "std", "seeds"])
    layers = [
        line | _encoded(chosen),
        points | _encoded(chosen, tooltip=tooltip, shape=_by_line(frame, "shape")),
    ]
    if seeds:
        thin = single | {"mark": {"type": "line", "strokeWidth": 0.8}}
        layers.insert(0, thin | _encoded(faint, detail={"field": "seed"}))
    shared = {
        "x": {
            "field": "round",
            "type": "quantitative",
            "title": "Round",
            "scale": {"zero": False},
            "axis": {"values": _round_ticks(frame)},
        },
        "y": _measured(metric),
        "color": _by_line(frame, "color"),
    }
    return _faceted(frame, values, {"layer": layers, "encoding": shared, **_size(frame)})


def last_spec(
    frame: pd.DataFrame, axes: Sequence[str], metric: Metric, lines: Sequence[str]
) -> Spec:
    """Return the last evaluated round of each run: one dot per seed, a bar at the mean."""
    frame = placed(last_rounds(frame), line_axis(lines), axes)
    values = [*_means(frame, metric), *_seeds(frame, metric)]
    layers = [
        {
            "transform": [{"filter": "datum.seed !== null"}],
            "mark": {"type": "point", "size": 55},
            "encoding": {"tooltip": _tooltip(metric, ["seed", "round"])},
        },
        {
            "transform": [{"filter": "datum.seed === null"}],
            "mark": {"type": "tick", "thickness": 2.5, "size": 18},
            "encoding": {"tooltip": _tooltip(metric, ["round", "std", "seeds"])},
        },
    ]
    order = list(dict.fromkeys(frame[LINE]))
    shared = {
        "x": _measured(metric),
        "y": {"field": "line", "type": "nominal", "sort": order, "title": None},
        "color": {"value": COLOURS[0]},
    }
    size = _size(frame) | {"height": {"step": 24}}
    return _faceted(frame, values, {"layer": layers, "encoding": shared, **size})


def partition_spec(histograms: Mapping[str, pd.DataFrame], names: Names) -> Spec:
    """Return partitions over clients: one bubble per client and class, by the partition's label.

    `histograms` are as `fedstage.results.figures.partition.read_histogram` returns them.
    """
    values = [_bubble(label, row, names) for label, frame in histograms.items()
              for row in frame.to_dict("records")]  # fmt: skip
    clients, classes = (1 + max(int(row[key]) for row in values) for key in ("client", "class"))
    across, down = _cell(clients, 900 if len(histograms) == 1 else 300), _cell(classes, 420)
    spec = {
        "mark": {"type": "circle", "opacity": 0.75, "color": COLOURS[0]},
        "width": across * clients,
        "height": down * classes,
        "encoding": {
            "x": _numbered("client", "Client"),
            "y": _numbered("class", "Class"),
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
    return _document(values, spec, len(histograms))


def _bubble(label: str, row: Mapping[Any, Any], names: Names) -> dict[str, Any]:
    client, kind = int(row["client"]), int(row["label"])
    return {
        "facet": label, "client": client, "class": kind, "samples": int(row["samples"]),
        "client_name": name_of(client, names.clients), "class_name": name_of(kind, names.classes),
    }  # fmt: skip


_BY_LEGEND = {
    "name": "chosen",
    "select": {"type": "point", "fields": ["line"]},
    "bind": "legend",
}


def _means(frame: pd.DataFrame, metric: Metric) -> list[dict[str, Any]]:
    cells: Any = frame.groupby([FACET, LINE, "round"], sort=False)[metric]
    return [
        {
            "facet": facet, "line": line, "round": int(at), "value": round(scores.mean(), 2),
            "std": None if len(scores) < 2 else round(scores.std(ddof=1), 2),
            "seeds": len(scores), "seed": None,
        }
        for (facet, line, at), scores in cells
    ]  # fmt: skip


def _seeds(frame: pd.DataFrame, metric: Metric) -> list[dict[str, Any]]:
    columns = zip(*(frame[key] for key in (FACET, LINE, "round", SEED, metric)), strict=True)
    return [
        {
            "facet": facet,
            "line": line,
            "round": int(at),
            "seed": int(seed),
            "value": round(score, 2),
        }
        for facet, line, at, seed, score in columns
    ]


def _encoded(opacity: Spec, **channels: Any) -> Spec:
    return {"encoding": {"opacity": opacity, **channels}}


def _by_line(frame: pd.DataFrame, channel: str) -> Spec:
    """Return the colour, or shape, of each line, in the order of the table."""
    lines = list(dict.fromkeys(frame[LINE]))
    scale: Spec = {"domain": lines}
    if channel == "color":
        scale["range"] = list(COLOURS)
    return {"field": "line", "type": "nominal", "scale": scale, "legend": {"title": None}}


def _round_ticks(frame: pd.DataFrame) -> list[int]:
    """Return at most a dozen of the evaluated rounds, evenly spaced from the last one on."""
    rounds = sorted(set(frame["round"]))
    step = -(-len(rounds) // (12 if frame[FACET].nunique() == 1 else 6))
    return [int(round_) for round_ in rounds[::-1][::step]]


def _measured(metric: Metric) -> Spec:
    title = f"{METRICS[metric]} (%)"
    scale = {"zero": False, "nice": True}
    return {"field": "value", "type": "quantitative", "title": title, "scale": scale}


def _tooltip(metric: Metric, fields: Sequence[str]) -> list[Spec]:
    titles = {"std": "deviation over seeds", "seeds": "seeds", "round": "round", "seed": "seed"}
    return [
        {"field": "line", "title": " "},
        {"field": "facet", "title": "at"},
        {"field": "value", "title": f"{METRICS[metric]} (%)", "format": ".2f"},
        *({"field": name, "title": titles[name]} for name in fields),
    ]


def _numbered(field: str, title: str) -> Spec:
    axis = {"labelOverlap": True, "labelAngle": 0}
    return {"field": field, "type": "ordinal", "title": title, "axis": axis}


def _cell(count: int, most: int) -> float:
    """Return pixels a client, or class, so that all take at most so many."""
    return min(26.0, max(2.0, most / count))


def _size(frame: pd.DataFrame) -> Spec:
    """Return the pixels of a facet, of which up to three stand side by side."""
    facets = frame[FACET].nunique()
    width = {1: 640, 2: 380}.get(facets, 250)
    return {"width": width, "height": round(width * (0.5 if facets == 1 else 0.65))}


def _faceted(frame: pd.DataFrame, values: list[dict[str, Any]], spec: Spec) -> Spec:
    return _document(values, spec, frame[FACET].nunique())


def _document(values: list[dict[str, Any]], spec: Spec, facets: int) -> Spec:
    """Return a whole specification, with a facet for each value of `facet` if there are several."""
    document = {"$schema": _SCHEMA, "config": _CONFIG, "data": {"values": values}}
    if facets == 1:
        return document | spec
    order = list(dict.fromkeys(row["facet"] for row in values))
    return document | {
        "facet": {"field": "facet", "type": "nominal", "sort": order},
        "columns": min(_FACETS_A_ROW, facets),
        "spec": spec,
    }
