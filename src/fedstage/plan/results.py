"""The folder of all artefacts, whose names are relative to it, and the files of results."""

from collections.abc import Sequence

RESULTS = "results"
#: The folder of links to runs by method and seed.
BY_METHOD = f"{RESULTS}/by_method"

#: The folders of stages that are not named after them.
FOLDERS = {"choice": "choices", "scores": "tables", "costs": "tables"}
#: The formats of tables and figures: those that are made by default, and on request.
FORMATS = {"table": ("md", "csv"), "figure": ("png",)}
FURTHER = {"table": ("html", "tex", "parquet"), "figure": ("svg", "pdf")}

_AT = "{experiment}/{scale}"
#: The files of stages of results, with wildcards; `shown` is what a table or figure shows.
FILES: dict[str, dict[str, str]] = {
    "scores": {"scores": f"{RESULTS}/tables/{_AT}.scores.parquet"},
    "costs": {"costs": f"{RESULTS}/tables/{_AT}.costs.parquet"},
    "table": {"files": f"{RESULTS}/{{shown}}/{_AT}.{{format}}"},
    "figure": {"files": f"{RESULTS}/figures/{_AT}_{{shown}}.{{format}}"},
    "properties": {
        "markdown": f"{RESULTS}/properties/{_AT}.md",
        "csv": f"{RESULTS}/properties/{_AT}.csv",
    },
    "simulation": {
        "csv": f"{RESULTS}/simulation/{_AT}.csv",
        "figure": f"{RESULTS}/figures/{_AT}_schedule.png",
    },
    "report": {"output": f"{RESULTS}/report/{_AT}.html"},
}


def result_files(
    stage: str, experiment: str, scale: str, shown: str = "", formats: Sequence[str] = ()
) -> list[str]:
    """Return the files that a stage of results makes of an experiment at a scale."""
    at = {"experiment": experiment, "scale": scale, "shown": shown}
    return [
        path.format(**at, format=kind)
        for path in FILES[stage].values()
        for kind in (formats or FORMATS.get(stage, ("",)))
    ]


def description_file(what: str) -> str:
    """Return the file of an experiment's ``runs``, ``results`` or ``claims``, with wildcards."""
    return f"{RESULTS}/descriptions/{{experiment}}/{{scale}}.{what}.json"


def choice_file(choice: str) -> str:
    """Return the file with what a choice compares."""
    return f"{RESULTS}/descriptions/{choice}.choice.json"


def chosen_metrics_file(choice: str) -> str:
    """Return the metrics of the chosen candidate."""
    return f"{RESULTS}/choices/{choice}/metrics.parquet"


def chosen_file(choice: str) -> str:
    """Return the file that names the chosen candidate."""
    return f"{RESULTS}/choices/{choice}/chosen.json"
