"""Stage `properties`: complexity, secure aggregation and communication of methods, as a table.

These are FedEED's Table 3 and FedSDD's Table 1: formulas, with the bytes that were sent.
"""

from pathlib import Path
from typing import Any

import pandas as pd

from fedstage.experiments.runs_file import ExperimentRun, read_runs_file
from fedstage.plan.runs import exposed, predicting
from fedstage.plan.training import aggregation
from fedstage.protocol.groups import client_groups
from fedstage.protocol.teaching import students
from fedstage.results.documents import write_tables
from fedstage.results.labels import NOTHING, labelled
from fedstage.results.table import Table
from fedstage.results.tidy import SEED, last_rounds, read_tidy, typed
from fedstage.settings.ensembles import Aggregated, Bayesian
from fedstage.settings.recipes import Recipe
from fedstage.stages.scores import header_of

_LEGEND = [
    "**Ensemble**: models of the teacher, which the server asks about each public image. C: "
    "participants of a round, K: global models, R: rounds whose models are members, S: sampled "
    f"models; {NOTHING}: nothing is distilled.",
    "**Students**: models that are distilled in a round.",
    "**Secure aggregation**: whether the server needs no more of single clients than the sum of "
    "their updates; if it does, the stage that reads them one by one.",
]
_SENT = (
    "**Communication**: measured: bytes to and from a client until training ends, relative to the "
    "first row."
)


def properties(*, runs: Path, scores: Path | None = None, markdown: Path, csv: Path) -> None:
    """Put the ensemble, secure aggregation and communication of each method into a table.

    `scores` has the bytes of each run, if they are counted.
    """
    experiment = read_runs_file(runs)
    header, first = header_of(experiment), experiment.runs[0].settings[SEED]
    rows = [
        {axis: run.settings[axis] for axis in header.shown} | _properties(run)
        for run in experiment.runs
        if run.settings[SEED] == first
    ]
    exact = pd.DataFrame(rows).drop_duplicates(header.shown, ignore_index=True)
    exact = exact.assign(**{axis: typed(exact[axis].tolist()) for axis in header.shown})
    if scores is not None:
        sent = last_rounds(read_tidy(scores))
        sent = sent[sent[SEED].astype(str) == str(first)].drop_duplicates(header.shown)
        exact["communication"] = (sent["bytes"] / sent["bytes"].iloc[0]).to_numpy()
    shown = labelled(exact, header, header.shown)
    shown["Ensemble"] = exact["ensemble"].fillna(NOTHING)
    shown["Students"] = exact["students"].astype(str)
    shown["Secure aggregation"] = [
        "yes" if pd.isna(one) else f"no: {one}" for one in exact["reader"]
    ]
    legend = list(_LEGEND)
    if "communication" in exact:
        shown["Communication"] = [f"{ratio:.2f}×" for ratio in exact["communication"]]
        legend.append(_SENT)
    if experiment.ratio:
        ratios = exact["published_communication"]
        shown["Published"] = [NOTHING if pd.isna(one) else f"{one:.2f}×" for one in ratios]
        legend.append(f"**Published**: {experiment.ratio}.")
    else:
        exact = exact.drop(columns="published_communication")
    title = f"{experiment.title}: properties"
    table = Table(title, shown, len(header.shown), exact, below=legend)
    for file in (markdown, csv):
        write_tables(file, [table])


def _properties(run: ExperimentRun) -> dict[str, Any]:
    recipe = run.recipe
    seen = exposed(predicting(recipe, run.length), but=aggregation)
    return {
        "ensemble": ensemble_size(recipe),
        "students": len(students(recipe)),
        "reader": seen.stage if seen else None,
        "published_communication": run.published_ratio,
    }


def ensemble_size(recipe: Recipe) -> str | None:
    """Write the number of the teacher's models as a formula with its value: ``C + S + 1 = 19``."""
    trainer, groups = recipe.ensemble, len(client_groups(recipe))
    if recipe.global_trainer is None or trainer is None:
        return None
    if isinstance(trainer, Aggregated):
        return f"K R = {groups * trainer.checkpoints}"
    if isinstance(trainer, Bayesian):
        drawn = groups * (trainer.samples + 1)
        return f"C + {'S + 1' if groups == 1 else 'K (S + 1)'} = {recipe.participants + drawn}"
    return f"C = {recipe.participants}"
