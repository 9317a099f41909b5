from fedstage.results.report.origins import Origin, describe_machine, shared_settings
from fedstage.settings.merging import flatten


def test_settings_are_flat_and_those_in_common_are_told_once():
    one = flatten({"clients": 4, "client": {"rate": 0.1, "clip": {}}, "seed": 0})
    other = flatten({"clients": 4, "client": {"rate": 0.2, "clip": {}}, "seed": 0})
    assert one == {"clients": "4", "client.rate": "0.1", "client.clip": "{}", "seed": "0"}
    shared = shared_settings([Origin("a", settings=one), Origin("b", settings=other)])
    assert shared == {"clients": "4", "client.clip": "{}", "seed": "0"}


def test_a_machine_is_described_by_processor_cores_and_gpu():
    machine = {"processor": "EPYC", "cores": 2, "gpu": None}
    assert describe_machine(machine) == "EPYC, 2 cores, no GPU used"
    assert describe_machine(machine | {"gpu": "H100"}) == "EPYC, 2 cores, H100"
    assert describe_machine({}) == "not recorded"
