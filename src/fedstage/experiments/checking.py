"""``fedstage check``: whether the configuration and all experiments are valid."""

import sys
from pathlib import Path

from fedstage.errors import FedstageError
from fedstage.experiments.catalogue import resolve_all, resolve_alone
from fedstage.experiments.library import experiment_names, faults_of
from fedstage.settings.config_file import Config
from fedstage.settings.validation import validate
from fedstage.storage.yaml_files import load_yaml


def check(config: Path, workflow: Path) -> str:
    """Return how many experiments and runs there are, after resolving all of them.

    Parameters
    ----------
    workflow : Path
        The folder `workflow`.

    Raises
    ------
    FedstageError
        If experiments are not valid; the message has a line for each fault.
    """
    checked = validate(Config, load_yaml(config), str(config))
    names = experiment_names(checked, workflow)
    print(f"resolving {len(names)} experiments, which takes some seconds", file=sys.stderr)
    try:
        runs = resolve_all(checked, workflow).runs
    except FedstageError:
        faults = faults_of(names, lambda name: resolve_alone(checked, workflow, name))
        if not faults:
            raise
        raise FedstageError("\n".join(dict.fromkeys(faults.values()))) from None
    return f"{len(names)} experiments, {sum(map(len, runs.values()))} runs: valid"
