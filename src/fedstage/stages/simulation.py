"""Stage `simulation`: when the jobs of each method's rounds would run on clients and a server."""

from pathlib import Path
from typing import Any

import pandas as pd

from fedstage.experiments.runs_file import SEED, read_runs_file
from fedstage.results.documents import csv_of
from fedstage.results.labels import place_label
from fedstage.results.style import save_figure
from fedstage.stages.collected.schedules import draw_schedules, schedule
from fedstage.stages.scores import header_of
from fedstage.storage.files import save_text


def simulation(*, runs: Path, csv: Path, figure: Path) -> None:
    """Write the start and end of every job as CSV, and draw the first rounds of the first seed."""
    experiment = read_runs_file(runs)
    header, rows, drawn = header_of(experiment), list[dict[str, Any]](), {}
    for run in experiment.runs:
        spans, clients = schedule(run.recipe, run.length.rounds, experiment.simulation)
        place = {axis: run.settings[axis] for axis in (*header.shown, SEED)}
        for job, span in spans.items():
            at = {"round": job.round, "group": job.group, "stage": job.stage}
            rows.append({**place, **at, "client": clients.get(job), **span._asdict()})
        if run.recipe.seed == experiment.runs[0].recipe.seed:
            seconds = max(span.end for span in spans.values()) / run.length.rounds
            name = place_label(header.shown, run.settings, header)
            drawn[f"{name}: {seconds:.3g} s a round"] = spans, clients
    frame = pd.DataFrame(rows)
    save_text(csv, csv_of(frame.assign(client=frame["client"].astype("Int64"))))
    most = max(run.recipe.clients for run in experiment.runs)
    save_figure(draw_schedules(drawn, most), figure)
