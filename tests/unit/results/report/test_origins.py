from pathlib import Path

from fedstage.results.report.circumstances import commit
from fedstage.results.report.origins import Origin, describe_machine, shared_settings
from fedstage.settings.merging import flatten

REPOSITORY = Path(__file__).parents[4]


def test_settings_are_flat_and_those_in_common_are_told_once():
    one = flatten({"clients": 4, "client": {"rate": 0.1, "clip": {}}, "seed": 0})
    other = flatten({"clients": 4, "client": {"rate": 0.2, "clip": {}}, "seed": 0})
    assert one == {"clients": "4", "client.rate": "0.1", "client.clip": "{}", "seed": "0"}
    shared = shared_settings([Origin("a", settings=one), Origin("b", settings=other)])
    assert shared == {"clients": "4", "client.clip": "{}", "seed": "0"}


def test_runs_of_which_nothing_is_known_share_no_settings():
    known = Origin("a", settings={"clients": "4"})
    assert shared_settings([known, Origin("b", fault="no record")]) == {"clients": "4"}
    assert shared_settings([Origin("b", fault="no record")]) == {}


def test_a_machine_is_described_by_processor_cores_and_gpu():
    machine = {"processor": "EPYC", "cores": 2, "gpu": None}
    assert describe_machine(machine) == "EPYC, 2 cores, no GPU used"
    assert describe_machine(machine | {"gpu": "H100"}) == "EPYC, 2 cores, H100"
    assert describe_machine({}) == "not recorded"


def test_the_commit_is_that_of_the_first_folder_in_a_repository(tmp_path):
    assert commit(tmp_path) == "not in a git repository"
    assert len(commit(tmp_path, REPOSITORY).split("`")[1]) == 40
