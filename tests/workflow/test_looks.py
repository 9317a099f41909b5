"""What users see, in a real browser and a real terminal: pictures to look at.

They stay in the folder that FEDSTAGE_PICTURES names, or in the test's own.
"""

import os
import pty
import re
import shutil
import subprocess
from html import escape
from pathlib import Path

import pytest
from tests.workflow.conftest import environment

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.skipif(not shutil.which("chromium"), reason="needs a browser"),
]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def pictures(tmp_path):
    folder = Path(os.environ.get("FEDSTAGE_PICTURES") or tmp_path / "pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def photograph(page, picture, height):
    """Take a picture of a page as a browser shows it, and return how many bytes it has."""
    picture.unlink(missing_ok=True)
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += [f"--window-size=1100,{height}", "--virtual-time-budget=20000"]
    command += [f"--screenshot={picture}", f"file://{page}"]
    subprocess.run(command, capture_output=True, timeout=1800, check=True)
    assert picture.read_bytes().startswith(PNG)
    return picture.stat().st_size


def in_terminal(command, folder):
    """Return what a command writes to a terminal of its own."""
    main, side = pty.openpty()
    process = subprocess.Popen(
        command, cwd=folder, env=environment(), stdin=side, stdout=side, stderr=side
    )
    os.close(side)
    written = b""
    while True:
        try:
            part = os.read(main, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        written += part
    os.close(main)
    assert process.wait(timeout=1800) == 0, written
    return written.decode().replace("\r\n", "\n")


def test_the_report_in_a_browser(copy, pictures):
    copy.make("results/report/tiny/default.html")
    report = copy.path / "results/report/tiny/default.html"
    blank = copy.path / "blank.html"
    blank.write_text("<html></html>")
    empty = photograph(blank, pictures / "blank.png", 2000)
    assert photograph(report, pictures / "report.png", 2000) > 3 * empty


def test_a_run_in_a_terminal(project, pictures):
    project.configure(methods=["fedavg"])
    text = in_terminal(project.command(), project.path)
    assert "| FedAvg " in text
    page = project.path / "run.html"
    plain = escape(re.sub(r"\x1b\[[\d;]*m", "", text))
    page.write_text(f"<meta charset='utf-8'><pre>{plain}</pre>")
    photograph(page, pictures / "run.png", 1500)
