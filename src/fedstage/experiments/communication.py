"""What is known of an experiment's communication when the Snakefile is parsed, ready for JSON."""

from collections.abc import Iterator

from fedstage.experiments.catalogue import Catalogue, choice_id, metrics_of
from fedstage.plan import artefacts
from fedstage.plan.runs import Run
from fedstage.plan.sharing import canonical
from fedstage.results.communication.files import read_files, traffic_files
from fedstage.results.head import head_of
from fedstage.settings.lines import Line
from fedstage.settings.merging import Raw
from fedstage.settings.one_shot import OneShotLine


def describe_communication(catalogue: Catalogue, experiment: str, scale: str) -> Raw:
    """Return what the table and figure of an experiment's communication need to know."""
    definition = catalogue.experiments[experiment]
    runs = catalogue.runs[experiment, scale]
    about = head_of(experiment, scale, definition)
    if reach := definition.communication.reach:
        about["reach"] = reach
    published = catalogue.published_memory.get((experiment, scale))
    if published is None:
        return {**about, "runs": [_described(run) for run in runs]}
    memory = [number and number["value"] for number in published.numbers]
    described = [
        {**_described(run), "memory_mib": value} for run, value in zip(runs, memory, strict=True)
    ]
    return {**about, "published": published.source, "notes": published.notes, "runs": described}


def files_of(catalogue: Catalogue, experiment: str, scale: str) -> list[str]:
    """Return all that the table reads, metrics apart, each file once."""
    parts = (part for run in catalogue.runs[experiment, scale] for part in _parts(run))
    read = (path for part in parts for path in read_files(part.line, part.length))
    chosen = (_chosen(run) for run in catalogue.runs[experiment, scale] if run.candidates)
    return list(dict.fromkeys([*read, *chosen]))


def validation_of(catalogue: Catalogue, experiment: str, scale: str) -> list[str]:
    """Return the metrics on validation samples that say which round was the best."""
    runs = catalogue.runs[experiment, scale]
    return list(dict.fromkeys(path for run in runs for path in _validation(run)))


def tables_read(catalogue: Catalogue) -> Iterator[str]:
    """Yield the tables of rounds that are read where an experiment asks for communication."""
    for (name, _), runs in catalogue.runs.items():
        if "communication" in catalogue.experiments[name].results:
            for part in (part for run in runs for part in _parts(run)):
                yield from traffic_files(part.line, part.length.rounds)


def _described(run: Run) -> Raw:
    tried = [
        {"values": one.axes if run.candidates else {}, "parts": [_part(p) for p in one.chain()]}
        for one in run.candidates or (run,)
    ]
    described: Raw = {"settings": run.axes, "metrics": metrics_of(run), "candidates": tried}
    if run.candidates:
        described["chosen"] = _chosen(run)
    if validation := _validation(run):
        described["validation"] = validation
    return described


def _part(run: Run) -> Raw:
    kind = "local"
    if isinstance(run.line, Line):
        kind = "federated"
    elif isinstance(run.line, OneShotLine):
        kind = "one_shot"
    return {"length": canonical(run.length), kind: canonical(run.line)}


def _parts(run: Run) -> Iterator[Run]:
    """Yield the runs that a run, or each of its candidates, consists of."""
    for one in run.candidates or (run,):
        yield from one.chain()


def _chosen(run: Run) -> str:
    return artefacts.chosen_file(choice_id(run))


def _validation(run: Run) -> list[str]:
    """Return the validation metrics of a federated run, or of its candidates."""
    tried = run.candidates or (run,)
    if not all(isinstance(one.line, Line) and one.line.validation for one in tried):
        return []
    return [metrics_of(one.in_role("validation")) for one in tried]
