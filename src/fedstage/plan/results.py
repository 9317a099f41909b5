"""The folder of all artefacts, whose names are relative to it, and the files of results."""

RESULTS = "results"
#: The folder of links to runs by method and seed.
BY_METHOD = f"{RESULTS}/by_method"

#: The folders of stages that are not named after them.
FOLDERS = {"choice": "choices", "retention_summary": "retention", "run_scores": "tables"}
#: The files of a figure: for screens, for print, and its caption.
FORMATS = ("png", "svg", "pdf", "txt")
#: The files of options of stages of results, below a folder of the experiment; figures apart.
_FILES = {
    "scores": "{scale}.scores.csv",
    "csv": "{scale}.csv",
    "parquet": "{scale}.parquet",
    "by_run": "{scale}.runs.parquet",
    "overlap": "{scale}.overlap.csv",
    "markdown": "{scale}.md",
    "html": "{scale}.html",
    "latex": "{scale}.tex",
    "output": "{scale}.html",
    "samples": "{scale}_partition.csv",
}


def result_file(stage: str, option: str) -> str:
    """Return the file of an option of a stage of results, with wildcards."""
    return f"{RESULTS}/{FOLDERS.get(stage, stage)}/{{experiment}}/{_FILES[option]}"


def figure_files(name: str) -> str:
    """Return the files of a figure, with wildcards, and its format in braces."""
    return f"{RESULTS}/figures/{{experiment}}/{{scale}}_{name}.{{format}}"


def description_file(what: str) -> str:
    """Return the file of an experiment's ``runs``, ``results`` or ``claims``, with wildcards."""
    return f"{RESULTS}/descriptions/{{experiment}}/{{scale}}.{what}.json"


def files_at(path: str, experiment: str = "{experiment}", scale: str = "{scale}") -> list[str]:
    """Return a file, or all files of a figure, of an experiment at a scale."""
    formats = FORMATS if "{format}" in path else ("",)
    return [path.format(experiment=experiment, scale=scale, format=kind) for kind in formats]


def choice_file(choice: str) -> str:
    """Return the file with what a choice compares."""
    return f"{RESULTS}/descriptions/{choice}.choice.json"


def chosen_metrics_file(choice: str) -> str:
    """Return the metrics of the chosen candidate."""
    return f"{RESULTS}/choices/{choice}/metrics.parquet"


def chosen_file(choice: str) -> str:
    """Return the file that names the chosen candidate."""
    return f"{RESULTS}/choices/{choice}/chosen.json"
