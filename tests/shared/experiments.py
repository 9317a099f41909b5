"""The experiments of the repository, without what only data of one's own could complete."""

from functools import cache
from pathlib import Path

from fedstage.errors import UncountedClients
from fedstage.experiments.catalogue import Catalogue, resolve_all, resolve_alone
from fedstage.experiments.library import experiment_names
from fedstage.settings.config_file import Config
from fedstage.settings.validation import validate
from fedstage.storage.yaml_files import load_yaml

WORKFLOW = Path(__file__).parents[2] / "workflow"

#: Experiments whose methods use all stages of the graph.
OF_ALL_STAGES = [
    "quickstart", "benchmark_distillation/smoke", "benchmark_one_shot/smoke", "fens_table1/smoke",
    "fedet_table2/smoke", "bkd_one_edge/smoke", "fedsdd_table5/smoke", "fedsdd_table2/smoke",
    "benchmark_privacy/smoke",
]  # fmt: skip

SEEDS = (0,)


@cache
def experiments() -> tuple[Catalogue, dict[str, str]]:
    """Return the catalogue of all experiments whose clients can be counted, and why others' cannot.

    All runs have one seed: nothing in them but their draws depends on it.
    """
    config = validate(Config, load_yaml(WORKFLOW.parent / "config.yaml"), "config.yaml")
    try:
        found: tuple[Catalogue, dict[str, str]] = resolve_all(config, WORKFLOW, seeds=SEEDS), {}
    except UncountedClients:
        names = experiment_names(config, WORKFLOW)
        uncounted = {name: reason for name in names if (reason := _uncounted(config, name))}
        kept = [name for name in names if name not in uncounted]
        found = resolve_all(config, WORKFLOW, kept, SEEDS), uncounted
    return found


def _uncounted(config: Config, name: str) -> str | None:
    try:
        resolve_alone(config, WORKFLOW, name)
    except UncountedClients as reason:
        return str(reason)
    return None
