"""Stage `simulation`: when the jobs of each method's rounds would run on clients and a server."""

from pathlib import Path

from fedstage.experiments.runs_file import SEED, read_runs_file
from fedstage.results.figures.style import save_figure
from fedstage.results.schedules import draw_schedules, schedule
from fedstage.results.tables.columns import Cell, write_csv
from fedstage.results.tables.labels import name_for_people


def simulation(*, runs: Path, csv: Path, figure: list[Path]) -> None:
    """Write the start and end of every job as CSV, and draw the first rounds of the first seed.

    Parameters
    ----------
    figure : list of Path
        A path for each format, and one for the caption.
    """
    experiment = read_runs_file(runs)
    rows: list[dict[str, Cell]] = []
    drawn = {}
    for run in experiment.runs:
        spans, clients = schedule(run.recipe, run.length.rounds, experiment.simulation)
        place = {axis: run.settings[axis] for axis in (*experiment.axes, SEED)}
        for job, span in spans.items():
            at: dict[str, Cell] = {"round": job.round, "group": job.group, "stage": job.stage}
            rows.append(place | at | {"client": clients.get(job)} | span._asdict())
        if run.recipe.seed == experiment.runs[0].recipe.seed:
            seconds = max(span.end for span in spans.values()) / run.length.rounds
            name = name_for_people(experiment.axes, run.settings, experiment)
            drawn[f"{name}: {seconds:.3g} s a round"] = spans, clients
    write_csv(csv, rows)
    clients_of = max(run.recipe.clients for run in experiment.runs)
    caption = f"{experiment.title}. Numbers are rounds. Nothing was trained; seconds are settings."
    save_figure(draw_schedules(drawn, clients_of), figure, caption)
