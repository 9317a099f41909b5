"""Each job of a run on a disk that is full, with files that may not be so large, as another user.

It ends in one line, or writes the right bytes, and leaves no temporary file. FEDSTAGE_DISKS is how
often each job runs in each of these, by default once.
"""

import os
import random
import resource
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from .damage import jobs, outcome, readers_of

pytestmark = pytest.mark.workflow

TIMES = int(os.environ.get("FEDSTAGE_DISKS", "1"))
ROOM = 2**20  # beside the run's own files
NOBODY = 65534


@pytest.fixture(scope="module")
def disk(finished_run, tmp_path_factory):
    """A copy of the run, on a disk of its own if this user may mount one."""
    folder = tmp_path_factory.mktemp("disk")
    used = sum(path.stat().st_blocks * 512 for path in finished_run.rglob("*") if path.is_file())
    mount = ["mount", "-t", "tmpfs", "-o", f"size={2 * used + ROOM}", "fedstage", str(folder)]
    own = subprocess.run(mount, capture_output=True).returncode == 0
    shutil.copytree(finished_run, folder / "run", symlinks=True)
    yield folder / "run", own
    if own:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def right(disk, monkeypatch):
    """All jobs of the run, in whose folder the test is, with what they write."""
    monkeypatch.chdir(disk[0])
    readers_of()
    return [(job, {name: Path(name).read_bytes() for name in job.outputs}) for job in jobs()]


@contextmanager
def small_files(draw, size):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (draw.randrange(size), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def full_disk(draw, size):
    """A file that takes all but some pages."""
    filler, page = Path("filler"), os.statvfs(".").f_bsize
    left = draw.randrange(-(-size // page)) * page
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, os.statvfs(".").f_bavail * page - left)
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def another_user(draw, size):
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("trouble", [small_files, full_disk, another_user])
def test_each_job_ends_in_one_line_or_writes_the_right_bytes(right, disk, trouble):
    if trouble is full_disk and not disk[1]:
        pytest.skip("no disk may be mounted")
    if trouble is another_user and os.geteuid() != 0:
        pytest.skip("only root can be another user")
    draw, came = random.Random(18), []
    for job, content in right * TIMES:
        size = max(map(len, content.values())) + 3000  # with the log, and the record
        came.append((job.name, outcome(job, content, trouble(draw, size))))
    print(trouble.__name__, sorted(came))
    assert [one for one in came if one[1] not in ("same", "refused")] == []
    assert "refused" in {what for _, what in came}
    assert list(Path("results").rglob(".*.tmp")) == []
