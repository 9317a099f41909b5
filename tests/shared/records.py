"""Records of jobs, as `fedstage.storage.provenance` writes them, without any job."""

from pathlib import PurePosixPath

from fedstage.storage.files import save_json

MACHINE = {"processor": "P", "cores": 4, "gpu": None}
_DIGEST = "0123456789abcdef"


def write_record(
    root, stage, outputs, seconds, inputs=(), made="2026-01-01T00:00:00+00:00", **changes
):
    """Write the record of a job where its stage has the logs, below `root`; return its path."""
    _, identity, *rest = PurePosixPath(outputs[0]).parts[1:]
    path = root.joinpath("results/logs", stage, identity, *rest).with_suffix(".json")
    while path.exists():
        path = path.with_name("again_" + path.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "stage": stage,
        "made": made,
        "compute_s": seconds,
        "startup_s": 99.0,
        "peak_memory_mb": 1,
        "source": None,
        "versions": {},
        "machine": MACHINE,
        "options": {},
        "inputs": {"read": dict.fromkeys(inputs, _DIGEST)},
        "outputs": {"output": dict.fromkeys(outputs, _DIGEST)},
    }
    save_json(path, record | changes)
    return path
