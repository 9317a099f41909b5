"""Charts as Vega-Lite specifications: plain data, which the page draws."""

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

import pandas as pd

from fedstage.results.figures.looks import NONE, Look, looks_of
from fedstage.results.figures.placing import FACET, LINE, grid_columns, line_axis, panels_of, placed
from fedstage.results.figures.rounds import round_ticks
from fedstage.results.figures.seeds import FEWEST, Spread, spread_of
from fedstage.results.runs_file import SEED
from fedstage.results.tables.labels import head_of
from fedstage.results.tables.runs import RUN, last_rounds
from fedstage.settings.experiments import Bands
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
    frame: pd.DataFrame,
    axes: Sequence[str],
    metric: Metric,
    lines: Sequence[str],
    given: Mapping[str, Look] = NONE,
    bands: Bands = "interval",
) -> Spec | None:
    """Return accuracy, or another metric, over rounds; None if no run is evaluated more than once.

    `frame` has runs as `read_runs` returns them, with labels for people. Lines are the values of
    `line_axis(lines)`; all other axes of the table give the facets. Thin lines are single seeds,
    and horizontal lines are runs that are evaluated once. `given` are looks of lines by their
    labels, and `bands` is what bands show. If there is a single facet with more than five curves,
    each curve has a panel.
    """
    frame = placed(frame, line_axis(lines), axes)
    looks = looks_of(frame[LINE].unique(), given)
    several = frame.groupby(RUN)["round"].transform("size") > 1
    once, frame = frame[~several], frame[several]
    if frame.empty:
        return None
    names = list(dict.fromkeys(frame[LINE]))
    panels = panels_of(list(frame[FACET].unique()), names)
    if apart := panels[0].title in names and len(names) > 1:
        frame = frame.assign(**{FACET: frame[LINE]})
    means = _means(frame, metric, bands)
    levels = _means(last_rounds(once), metric, bands)
    facets = dict.fromkeys(frame[FACET])
    values = [
        *means,
        *(_seeds(frame, metric) if _shows_seeds(frame, bands) else []),
        *(level | {"facet": facet, "once": True} for level in levels for facet in facets
          if apart or level["facet"] == facet),
    ]  # fmt: skip
    behind = [_behind(means)] if apart else []
    encoding = {
        "y": _measured(metric),
        "color": _by_line(looks, [look.colour for look in looks.values()]),
    }
    spec = {"layer": [*behind, *_layers(frame, looks, metric)], "encoding": encoding}
    across = grid_columns(frame, line_axis(lines), axes)
    return document(values, spec | _size(frame, across), frame[FACET].nunique(), across)


def _layers(frame: pd.DataFrame, looks: Mapping[str, Look], metric: Metric) -> list[Spec]:
    """Return single seeds, bands, means, their points, and references with their names."""
    mean, x = _where("datum.seed === null && !datum.once"), {"x": _rounds(frame)}
    chosen = {"condition": {"param": "chosen", "value": 1}, "value": 0.12}
    faint = {"condition": {"param": "chosen", "value": 0.35}, "value": 0.05}
    band = {"condition": {"param": "chosen", "value": 0.16}, "value": 0.02}
    marks = _by_line(looks, [look.shape for look in looks.values()])
    dashes = _by_line(looks, [[2 * ink for ink in look.dashes] or [1, 0]
                                            for look in looks.values()])  # fmt: skip
    tooltip = _tooltip(metric, ["round", "std", "seeds"])
    once = _where("datum.once")
    text = {"type": "text", "align": "left", "dy": -7, "fontSize": 12}
    named = {"x": {"value": 6}, "text": {"field": "line"}}
    return [
        _where("datum.seed !== null") | {"mark": {"type": "line", "strokeWidth": 0.8}}
        | _encoded(faint, **x, detail={"field": "seed"}),
        mean | {"mark": "area"}
        | _encoded(band, **x, y=_measured(metric) | {"field": "low"}, y2={"field": "high"}),
        mean | {"mark": {"type": "line", "strokeWidth": 2}, "params": [_BY_LEGEND]}
        | _encoded(chosen, **x, strokeDash=dashes),
        mean | {"mark": {"type": "point", "filled": True, "size": 45}}
        | _encoded(chosen, **x, tooltip=tooltip, shape=marks),
        once | {"mark": {"type": "rule", "strokeWidth": 1.5}}
        | _encoded(chosen, strokeDash=dashes, tooltip=tooltip),
        once | {"mark": text} | _encoded(chosen, **named),
    ]  # fmt: skip


def _behind(means: Sequence[Mapping[str, Any]]) -> Spec:
    """Return all curves in grey, which stand behind every panel."""
    rows = [{key: row[key] for key in ("round", "value")} | {"of": row["line"]} for row in means]
    x = {"field": "round", "type": "quantitative"}
    encoding = {"x": x, "detail": {"field": "of"}, "color": {"value": "#cccccc"}}
    return {"data": {"values": rows}, "mark": {"type": "line", "strokeWidth": 1}} | {
        "encoding": encoding
    }


def _shows_seeds(frame: pd.DataFrame, bands: Bands) -> bool:
    """Whether single seeds are shown: if there are only two, which have no band."""
    return bands != "none" and 1 < frame[SEED].nunique() < FEWEST and len(frame) <= _MOST_SEEDS


def _where(condition: str) -> Spec:
    return {"transform": [{"filter": condition}]}


def _rounds(frame: pd.DataFrame) -> Spec:
    return {
        "field": "round",
        "type": "quantitative",
        "title": "Round",
        "scale": {"zero": False},
        "axis": {"values": _round_ticks(frame), "format": "d"},
    }


def last_spec(
    frame: pd.DataFrame,
    axes: Sequence[str],
    metric: Metric,
    lines: Sequence[str],
    given: Mapping[str, Look] = NONE,
) -> Spec:
    """Return the last evaluated round of each run: one dot per seed, a bar at the mean.

    `given` are looks of lines by their labels.
    """
    frame = placed(last_rounds(frame), line_axis(lines), axes)
    looks = looks_of(frame[LINE].unique(), given)
    values = [*_means(frame, metric), *_seeds(frame, metric)]
    layers = [
        _where("datum.seed !== null")
        | {
            "mark": {"type": "point", "size": 55},
            "encoding": {"tooltip": _tooltip(metric, ["seed", "round"])},
        },
        _where("datum.seed === null")
        | {
            "mark": {"type": "tick", "thickness": 2.5, "size": 18},
            "encoding": {"tooltip": _tooltip(metric, ["round", "std", "seeds"])},
        },
    ]
    shared = {
        "x": _measured(metric),
        "y": {"field": "line", "type": "nominal", "sort": list(looks), "title": None},
        "color": _by_line(looks, [look.colour for look in looks.values()]) | {"legend": None},
    }
    across = grid_columns(frame, line_axis(lines), axes)
    spec = {"layer": layers, "encoding": shared, **_size(frame, across), "height": {"step": 24}}
    return document(values, spec, frame[FACET].nunique(), across)


_BY_LEGEND = {"name": "chosen", "select": {"type": "point", "fields": ["line"]}, "bind": "legend"}


def _means(frame: pd.DataFrame, metric: Metric, bands: Bands = "interval") -> list[dict[str, Any]]:
    cells: Any = frame.groupby([FACET, LINE, "round"], sort=False)[metric]
    return [
        _ends(spread_of(list(scores), bands)) | {
            "facet": facet, "line": line, "round": int(at), "value": round(scores.mean(), 2),
            "std": None if len(scores) < 2 else round(scores.std(ddof=1), 2),
            "seeds": len(scores), "seed": None,
        }
        for (facet, line, at), scores in cells
    ]  # fmt: skip


def _ends(spread: Spread) -> dict[str, float | None]:
    """Return the ends of a band, within the range of percentages, if there is one."""
    if isnan(spread.half):
        return {"low": None, "high": None}
    low, high = spread.ends
    return {"low": round(low, 2), "high": round(high, 2)}


def _seeds(frame: pd.DataFrame, metric: Metric) -> list[dict[str, Any]]:
    columns = zip(*(frame[key] for key in (FACET, LINE, "round", SEED, metric)), strict=True)
    return [
        {"facet": facet, "line": line, "round": int(at), "seed": int(seed),
         "value": round(score, 2)}
        for facet, line, at, seed, score in columns
    ]  # fmt: skip


def _encoded(opacity: Spec, **channels: Any) -> Spec:
    return {"encoding": {"opacity": opacity, **channels}}


def _by_line(looks: Mapping[str, Look], values: Sequence[Any]) -> Spec:
    """Return the colour, shape or dashes of each line, in the order of the table."""
    scale = {"domain": list(looks), "range": list(values)}
    return {"field": "line", "type": "nominal", "scale": scale, "legend": {"title": None}}


def _round_ticks(frame: pd.DataFrame) -> list[int]:
    """Return the rounds to label, a dozen at most."""
    ends = int(frame["round"].min()), int(frame["round"].max())
    return round_ticks(*ends, 12 if frame[FACET].nunique() == 1 else 6)


def _measured(metric: Metric) -> Spec:
    title = head_of(metric)
    scale = {"zero": False, "nice": True}
    return {"field": "value", "type": "quantitative", "title": title, "scale": scale}


def _tooltip(metric: Metric, fields: Sequence[str]) -> list[Spec]:
    titles = {"std": "deviation over seeds", "seeds": "seeds", "round": "round", "seed": "seed"}
    return [
        {"field": "line", "title": " "},
        {"field": "facet", "title": "at"},
        {"field": "value", "title": head_of(metric), "format": ".2f"},
        *({"field": name, "title": titles[name]} for name in fields),
    ]


def _size(frame: pd.DataFrame, across: int | None) -> Spec:
    """Return the pixels of a facet, of `across` side by side or else up to three."""
    facets = frame[FACET].nunique()
    width = {1: 900, 2: 480, 4: 240}.get(across or min(_FACETS_A_ROW, facets), 330)
    return {"width": width, "height": round(width * (0.5 if facets == 1 else 0.65))}


def document(
    values: list[dict[str, Any]], spec: Spec, facets: int, across: int | None = None
) -> Spec:
    """Return a whole specification, with a facet for each value of `facet` if there are several.

    `across` of them are side by side, by default up to three.
    """
    document = {"$schema": _SCHEMA, "config": _CONFIG, "data": {"values": values}}
    if facets == 1:
        return document | spec
    order = list(dict.fromkeys(row["facet"] for row in values))
    header = {"header": {"labelLimit": spec["width"]}} if across else {}
    return document | {
        "facet": {"field": "facet", "type": "nominal", "sort": order} | header,
        "columns": across or min(_FACETS_A_ROW, facets),
        "spec": spec,
    }
