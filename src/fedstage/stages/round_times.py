"""Stage `round_times`: the seconds of a round's jobs, as the jobs themselves measured them."""

from pathlib import Path

from fedstage.results.round_times.seconds import read_times
from fedstage.results.round_times.table import (
    LEGEND,
    as_numbers,
    as_texts,
    machines_of,
    summarise_times,
    times_schema,
)
from fedstage.results.runs_file import read_runs_file
from fedstage.results.tables.exact import Cell, write_csv, write_parquet
from fedstage.results.tables.labels import place_for_people
from fedstage.results.tables.plain import write_markdown


def round_times(*, runs: Path, markdown: Path, csv: Path, parquet: Path, by_run: Path) -> None:
    """Collect the seconds of the jobs of each run from their records, below ``results/logs``.

    Seconds are of computing, with files and without start-up. Jobs that ran at the same time as
    others may have been slowed down. The table has a row for each combination of its axes, `by_run`
    a row for each run, with its value on every axis and its seed, for claims.
    """
    experiment = read_runs_file(runs)
    texts: list[dict[str, str]] = []
    numbers: list[dict[str, Cell]] = []
    measured: list[dict[str, Cell]] = []
    machines: dict[str, None] = {}
    for place, same in experiment.places().items():
        times = [read_times(Path(), run.recipe, run.length.rounds) for run in same]
        values = dict(zip(experiment.axes, place, strict=True))
        rounds = sum(run.length.rounds for run in same)
        spreads, names = summarise_times(times), machines_of(times)
        machines |= dict.fromkeys(names)
        keys = place_for_people(values, experiment)
        texts.append(keys | {"Rounds": str(rounds)} | as_texts(spreads))
        counts: dict[str, Cell] = {
            "measured_rounds": rounds,
            "seeds": len(same),
            "machine": "; ".join(names),
        }
        numbers.append({**values, **as_numbers(spreads), **counts})
        measured += [
            {**run.settings, **as_numbers(summarise_times([one]))}
            for run, one in zip(same, times, strict=True)
        ]
    source = (
        f"Experiment `{experiment.experiment}` at scale `{experiment.scale}`: seconds of computing "
        f"that the jobs recorded, on {'; '.join(machines)}."
    )
    write_markdown(markdown, experiment.title, source, texts, LEGEND)
    write_csv(csv, numbers)
    write_parquet(parquet, numbers, times_schema(numbers, experiment.axes))
    write_parquet(by_run, measured, times_schema(measured, experiment.runs[0].settings))
