"""Tables of the accuracy of each client and of each class."""

from collections.abc import Mapping, Sequence
from math import nan

import pandas as pd

from fedstage.results.labels import labelled, mean_and_std
from fedstage.results.table import Table
from fedstage.results.tidy import Tidy

_OWN = {
    "test": "own test samples",
    "validation": "own validation samples",
    "own_mix": "own mix of classes, on all test samples",
}


def client_tables(scores: Tidy, names: Mapping[str, Sequence[str]]) -> list[Table]:
    """Return the accuracy of each client, and of each class, with the number of samples.

    `names` may have names of `clients` and `classes`.
    """
    frame, header = scores.frame, scores.header
    exact, tables = _of_clients(scores, names), []
    for key, kinds, of in (("client", _OWN, "clients"), ("label", {"class": ""}, "classes")):
        for role, about in kinds.items():
            rows = frame[(frame["role"] == role) & frame[key].notna()]
            if rows.empty:
                continue
            known = list(names.get(of, ()))
            numbers = sorted(rows[key].astype(int).unique())
            told = [known[i] if i < len(known) else str(i) for i in numbers]
            shown = pd.DataFrame({"Client" if key == "client" else "Class": told})
            samples = rows[rows["measure"] == "own_samples"].groupby(key)["value"]
            shown["Samples"] = [f"{samples.max().get(i, nan):.0f}" for i in numbers]
            scored = rows[rows["measure"] == "own_accuracy"]
            place = labelled(scored, header, header.shown).agg(", ".join, axis="columns")
            for name, cell in scored.groupby(place, sort=False):
                values = cell.groupby(key)["value"]
                mean, std = values.mean(), values.std()
                shown[str(name)] = [
                    mean_and_std(float(mean.get(i, nan)), float(std.get(i, nan))) for i in numbers
                ]
            title = f"Accuracy by {'client' if key == 'client' else 'class'} (%)"
            tables.append(Table(f"{title}{': ' * bool(about)}{about}", shown, 1, exact))
    return tables


def _of_clients(scores: Tidy, names: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return a row for each run and client, or class: samples and accuracy, with their names."""
    key = [*scores.run, "role", "client", "label"]
    samples, accuracy = (
        scores.frame[scores.frame["measure"] == f"own_{name}"][[*key, "value"]].rename(
            columns={"value": name}
        )
        for name in ("samples", "accuracy")
    )
    found = samples.merge(accuracy, on=key, how="left").rename(columns={"role": "of"})
    for number, name, of in (
        ("client", "client_name", "clients"),
        ("label", "class_name", "classes"),
    ):
        known = names.get(of, ())
        told = {
            i: known[i] if i < len(known) else str(i) for i in found[number].dropna().astype(int)
        }
        found[name] = found[number].map(told)
    return found
