"""Who may read what a run writes: the user's umask decides, for jobs, results and the cache."""

import os
import stat

import pytest

pytestmark = pytest.mark.workflow


@pytest.fixture
def umask():
    """A function that sets the permissions that new files do not get; they are put back."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def test_clients_data_are_nobody_elses_if_the_user_says_so(new_project, umask):
    """Those of an earlier call with another umask stay as they are."""
    project = new_project().configure(methods=["fedavg"], rounds=1)
    project.plan()
    planned = {str(path) for path in project.files("results/**/*")}
    assert planned
    umask(0o077)
    project.make(XDG_CACHE_HOME=str(project.path / "cache"))
    written = [path for path in project.path.rglob("*") if not path.is_symlink()]
    found = {str(path.relative_to(project.path)): path.stat() for path in written}
    open_to_others = [
        name
        for name, status in found.items()
        if status.st_mode & 0o077 and stat.S_ISREG(status.st_mode) and name.startswith("results/")
    ]
    others = [name for name in open_to_others if name not in planned and "/logs/" not in name]
    assert others == []
    assert {"results/data", "results/partitions", "cache/fedstage"} <= found.keys()
    cached = [name for name in found if name.startswith("cache/")]
    assert [name for name in cached if found[name].st_mode & 0o077] == []
