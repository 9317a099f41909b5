"""Stage `round_times`: the seconds of a round's jobs, as the jobs themselves measured them."""

from collections.abc import Iterable
from pathlib import Path

from fedstage.results.definitions import Definition, read_definition
from fedstage.results.round_times.seconds import read_times
from fedstage.results.round_times.table import (
    LEGEND,
    as_numbers,
    as_texts,
    machines_of,
    summarise_times,
    times_schema,
)
from fedstage.results.tables.labels import show_value
from fedstage.results.tables.plain import Cell, as_columns, write_csv, write_markdown
from fedstage.storage.tensors import save_table


def round_times(
    *, definition: Path, markdown: Path, csv: Path, parquet: Path, by_run: Path
) -> None:
    """Collect the seconds of the jobs of each run from their records, below ``results/logs``.

    Seconds are of computing, files included and start-up not. Jobs that ran beside others may have
    been slowed down by them.

    Parameters
    ----------
    definition : Path
        JSON file of the experiment's lines.
    markdown, csv, parquet : Path
        The table, a row a combination of the table's axes.
    by_run : Path
        Parquet with a row a run, its value on every axis and its seed: what claims are judged by.

    Raises
    ------
    FedstageError
        If a file is missing or damaged, or a job has no record of its own.
    """
    experiment = read_definition(definition)
    texts: list[dict[str, str]] = []
    numbers: list[dict[str, Cell]] = []
    measured: list[dict[str, Cell]] = []
    machines: dict[str, None] = {}
    for place, runs in experiment.places().items():
        times = [read_times(Path(), run.line, run.length.rounds) for run in runs]
        values = dict(zip(experiment.axes, place, strict=True))
        rounds = sum(run.length.rounds for run in runs)
        spreads, on = summarise_times(times), machines_of(times)
        machines |= dict.fromkeys(on)
        keys = {axis: show_value(value) for axis, value in values.items()}
        texts.append(keys | {"Rounds": str(rounds)} | as_texts(spreads))
        about: dict[str, Cell] = {
            "measured_rounds": rounds,
            "seeds": len(runs),
            "machine": "; ".join(on),
        }
        numbers.append({**values, **as_numbers(spreads), **about})
        measured += [
            {**run.settings, **as_numbers(summarise_times([one]))}
            for run, one in zip(runs, times, strict=True)
        ]
    write_markdown(markdown, experiment.title, _source(experiment, machines), texts, LEGEND)
    write_csv(csv, numbers)
    _save(parquet, numbers, experiment.axes)
    _save(by_run, measured, experiment.runs[0].settings)


def _save(path: Path, rows: list[dict[str, Cell]], axes: Iterable[str]) -> None:
    schema = times_schema(rows, axes)
    save_table(path, as_columns(rows, schema), schema)


def _source(experiment: Definition, machines: Iterable[str]) -> str:
    return (
        f"Experiment `{experiment.experiment}` at scale `{experiment.scale}`: seconds of computing "
        f"that the jobs recorded, on {'; '.join(machines)}."
    )
