"""Peak memory and seconds of the aggregation of a round, by settings and participants.

uv run python -m tests.benchmarks.aggregation [--participants N ...] [--hidden N ...] [--output CSV]

The model is a perceptron of layers of `--hidden` neurons, as large as one wishes. Each figure is of
a process of its own, beyond one that only imports the stage, in multiples of a model's bytes.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from tests.benchmarks.rows import REPOSITORY, parser, report
from tests.shared.stages import recipe

from fedstage.models.initialisation import initialise
from fedstage.models.loading import build
from fedstage.settings.recipes import Recipe
from fedstage.storage.files import save_json
from fedstage.storage.tensors import save_tensors

#: By name what a recipe has beside `settings_of`.
CASES: dict[str, dict[str, Any]] = {
    "average": {},
    "learning rate": {"aggregation": {"learning_rate": 0.5}},
    "momentum": {"aggregation": {"server_optimizer": "momentum"}},
    "Adam": {"aggregation": {"server_optimizer": "adam"}},
    "SCAFFOLD": {"local": "scaffold"},
    "FedNova": {"local": "fednova"},
    "compressed": {"compression": "stc"},
    "FedBuff": {
        "aggregation": {"discount": "polynomial", "stale": "changes"},
        "staleness": {"random": {"probabilities": [0.5, 0.5]}},
    },
}

CODE = """
import sys, time, torch
from pathlib import Path
from fedstage.training.freed_memory import give_back, keep_freed
from fedstage.execution.notes import Timings, peak_mb
from fedstage.protocol.exchange import is_stale
from fedstage.settings.recipes import Recipe
from tests.shared.stages import aggregation
from fedstage.storage.yaml_files import read_recipe
torch.set_num_threads(1)
keep_freed()
folder = Path(sys.argv[1])
state = folder / "state"
stale = is_stale(read_recipe(folder / "recipe.yaml", Recipe))
def work(number):
    aggregation(
        recipe=folder / "recipe.yaml", info=folder / "info.json", start=folder / "start",
        updates=[folder / f"update_{participant}" for participant in range(number)],
        bases=[folder / ("base" if participant % 2 else "start") for participant in range(number)] *
        stale, state=state if state.exists() else None, output=folder / "new", participants=folder /
        "rows", new_state=folder / "new_state",
    )
work(1)  # which imports what it needs
for participants in map(int, sys.argv[2:]):
    give_back()
    Timings(0)  # which forgets the peak
    before, begin = peak_mb(), time.perf_counter()
    work(participants)
    print(peak_mb() - before, time.perf_counter() - begin)
"""


def settings_of(participants: int, hidden: list[int], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a recipe."""
    return {
        "data": "digits", "clients": participants, "partition": "iid",
        "participants": participants, "model": {"mlp": {"hidden": hidden}},
        "client": {"epochs": 1, "batch_size": 8, "learning_rate": 0.1},
        "seed": 0, "numerics": {"device": "cpu"},
    } | chosen  # fmt: skip


def write_round(folder: Path, settings: Mapping[str, Any]) -> int:
    """Write the files that the second round's aggregation reads; return a model's bytes."""
    recipe(settings=json.dumps(settings), output=folder / "recipe.yaml")
    save_json(folder / "info.json", {"shape": [1, 8, 8], "classes": 10, "mean": [0], "std": [1]})
    chosen = Recipe.model_validate(settings)
    model = build(chosen.model, (1, 8, 8), 10)
    initialise(model, torch.Generator().manual_seed(0))
    weights, own = model.state_dict(), chosen.compression.name != "none"
    for name, round_ in (("start", 1), ("base", 0)):
        save_tensors(folder / name, weights, {"round": round_, "group": 0})
    for participant in range(chosen.participants):
        generator = torch.Generator().manual_seed(participant + 1)
        tensors = {
            f"model/{name}": value + 0.01 * torch.randn(value.shape, generator=generator)
            for name, value in weights.items()
        }
        if settings.get("local") == "scaffold":
            tensors |= {f"payload/{name}": value / 2 for name, value in weights.items()}
        if settings.get("local") == "fednova":
            tensors["payload/gradient_mass"] = torch.tensor(float(participant + 1))
        tensors |= {f"residual/{name}": value for name, value in weights.items()} if own else {}
        place = {
            "round": 2,
            "group": 0,
            "participant": participant,
            "client": participant,
            "base_round": 1 - participant % 2,
        }
        numbers = {"samples": 10 + participant, "steps": 3, "loss": 0.5}
        save_tensors(folder / f"update_{participant}", tensors, place | numbers)
    _write_state(folder, settings, weights)
    return sum(value.nbytes for value in weights.values())


def _write_state(folder: Path, settings: Mapping[str, Any], weights: Mapping[str, Any]) -> None:
    """Write the state of the round before, where there is one."""
    kinds: dict[str, tuple[str, ...]] = {
        "momentum": ("optimizer/b/",),
        "adam": ("optimizer/m/", "optimizer/v/"),
        "scaffold": ("server/", "client/0/", "client/1/"),
        "stc": ("residual/server/", "residual/0/"),
    }
    names = json.dumps(settings)
    prefixes = [one for kind, found in kinds.items() if f'"{kind}"' in names for one in found]
    state = {f"{prefix}{name}": value**2 for prefix in prefixes for name, value in weights.items()}
    if "adam" in names:
        state["optimizer/t"] = torch.tensor(1)
    (folder / "state").unlink(missing_ok=True)
    if state:
        save_tensors(folder / "state", state, {"round": 1, "group": 0})


def aggregate(folder: Path, participants: list[int]) -> list[tuple[float, float]]:
    """Return megabytes that a new process needs beyond imports, and seconds, for each number."""
    command = [sys.executable, "-c", CODE, str(folder), *map(str, participants)]
    done = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    rows = [row.split() for row in done.stdout.splitlines()]
    return [(float(megabytes), float(seconds)) for megabytes, seconds in rows]


def main(arguments: list[str]) -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--participants", type=int, nargs="+", default=[4, 40])
    options.add_argument("--hidden", type=int, nargs="+", default=[640] * 12)
    options.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    chosen = options.parse_args(arguments)
    figures = {}
    for case in chosen.cases:
        with TemporaryDirectory() as folder:
            settings = settings_of(max(chosen.participants), chosen.hidden, CASES[case])
            size = write_round(Path(folder), settings) / 2**20
            measured = aggregate(Path(folder), chosen.participants)
        for number, (megabytes, seconds) in zip(chosen.participants, measured, strict=True):
            figures[f"{case}, {number} participants: models"] = megabytes / size
            figures[f"{case}, {number} participants: s"] = seconds
    report("aggregation", figures, vars(chosen), chosen.output)


if __name__ == "__main__":
    main(sys.argv[1:])
