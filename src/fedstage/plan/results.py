"""The folder of all artefacts, whose names are relative to it, and the files of results."""

RESULTS = "results"
#: The folder of links to runs by method and seed.
BY_METHOD = f"{RESULTS}/by_method"

#: The folders of stages that are not named after them.
FOLDERS = {"choice": "choices", "retention_summary": "retention", "run_scores": "tables"}
#: The files of options of stages of results, below a folder of the experiment; figures apart.
FILES = {
    "scores": "{scale}.scores.csv",
    "csv": "{scale}.csv",
    "parquet": "{scale}.parquet",
    "by_run": "{scale}.runs.parquet",
    "overlap": "{scale}.overlap.csv",
    "jobs": "{scale}_jobs.parquet",
    "markdown": "{scale}.md",
    "html": "{scale}.html",
    "latex": "{scale}.tex",
    "output": "{scale}.html",
    "samples": "{scale}_partition.csv",
}


def result_file(
    stage: str, option: str, experiment: str = "{experiment}", scale: str = "{scale}"
) -> str:
    """Return the file of an option of a stage of results, by default with wildcards."""
    folder = FOLDERS.get(stage, stage)
    return f"{RESULTS}/{folder}/{experiment}/{FILES[option].format(scale=scale)}"


def chosen_metrics_file(choice: str) -> str:
    """Return the metrics of the chosen candidate."""
    return f"{RESULTS}/choices/{choice}/metrics.parquet"


def chosen_file(choice: str) -> str:
    """Return the file that names the chosen candidate."""
    return f"{RESULTS}/choices/{choice}/chosen.json"
