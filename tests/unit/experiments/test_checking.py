from pathlib import Path

import pytest
import yaml
from tests.shared.settings import experiment, federated

from fedstage.errors import FedstageError
from fedstage.execution.cli import main
from fedstage.experiments.catalogue import check

REPOSITORY = Path(__file__).parents[3]
METHODS = (REPOSITORY / "workflow/methods.yaml").read_text()
GRID = {"method": ["fedavg"], "seed": [0, 1]}
BASE = federated(rounds=2)


@pytest.fixture
def project(tmp_path):
    def write(**experiments):
        (tmp_path / "workflow/experiments").mkdir(parents=True)
        (tmp_path / "workflow/methods.yaml").write_text(METHODS)
        for name, changes in experiments.items():
            content = experiment(title=name, base=BASE, grid=GRID, scales={"mini": None})
            text = yaml.safe_dump(content | changes)
            (tmp_path / f"workflow/experiments/{name}.yaml").write_text(text)
        (tmp_path / "config.yaml").write_text("targets: [one/mini]\n")
        return tmp_path / "config.yaml", tmp_path / "workflow"

    return write


def test_what_is_valid_is_counted(project, capsys, monkeypatch):
    monkeypatch.chdir(project(one={})[0].parent)
    assert main(["check"]) == 0
    assert capsys.readouterr().out.endswith(" runs: valid\n")


def test_every_fault_is_told(project):
    broken = {"two": {"base": {**BASE, "clients": 0}}, "three": {"like": "nonsuch"}}
    with pytest.raises(FedstageError) as caught:
        check(*project(one={}, **broken))
    three, two = str(caught.value).splitlines()
    assert (
        "/experiments/three.yaml: like = 'nonsuch': unknown; see `fedstage list experiments`"
        in three
    )
    assert two.startswith("two/mini, method fedavg: clients = 0: ")
