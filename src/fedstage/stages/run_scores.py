"""Stage `run_scores`: all measurements of an experiment's runs, in one CSV file that lasts."""

from pathlib import Path
from typing import Any

from fedstage.errors import FedstageError
from fedstage.experiments.runs_file import ExperimentRun, read_runs_file
from fedstage.results.report.origins import Jobs, describe_machine, spent
from fedstage.results.tables.columns import write_csv
from fedstage.results.tables.measured import measure
from fedstage.results.tables.score_file import axes_of, columns_of, score_rows
from fedstage.storage.records import find_artefact


def run_scores(*, runs: Path, scores: Path) -> None:
    """Write the scores file, from which tables, curves and claims are made.

    Scores, axes and digests of settings follow from the runs. The last three columns, where a
    score comes from, follow from the records next to the logs.
    """
    experiment = read_runs_file(runs)
    axes, jobs = axes_of(experiment), Jobs()
    rows = [
        row
        for run in experiment.runs
        for row in score_rows(run, axes, measure(run, experiment), _origin(run, jobs))
    ]
    write_csv(scores, rows, columns_of(axes))


def _origin(run: ExperimentRun, jobs: Jobs) -> dict[str, Any]:
    """Return commit or version, machine and seconds of a run; nothing without records."""
    try:
        record = find_artefact(Path() / run.metrics).job
        _, seconds = spent(run, Path(), jobs)
    except FedstageError:  # the logs may have been deleted; scores do not depend on them
        return dict.fromkeys(("source", "machine", "seconds"), "")
    return {
        "source": record.get("commit") or f"fedstage {record['versions'].get('fedstage')}",
        "machine": describe_machine(record.get("machine", {})),
        "seconds": round(seconds, 3),
    }
