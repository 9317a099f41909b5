"""The folder of all artefacts, whose names are relative to it."""

RESULTS = "results"
#: The folder of links to runs by method and seed.
BY_METHOD = f"{RESULTS}/by_method"


def chosen_metrics_file(choice: str) -> str:
    """Return the metrics of the chosen candidate."""
    return f"{RESULTS}/choices/{choice}/metrics.parquet"


def chosen_file(choice: str) -> str:
    """Return the file that names the chosen candidate."""
    return f"{RESULTS}/choices/{choice}/chosen.json"
