"""Runs with a method from the user's own folder."""

import pytest
import yaml

from .conftest import REPOSITORY, tiny_config

pytestmark = pytest.mark.workflow

EXAMPLE = REPOSITORY / "workflow/project/my_methods/fedcm.py"
METHOD = {"local": {"fedcm": {"alpha": 0.5}}}
HELPER = "SCALE = 1.0\n"


def configure(project):
    """Compare FedAvg and FedCM, whose file imports another of its folder."""
    config = tiny_config(methods=["fedavg"]) | {"plugins": ["my_methods/"]}
    experiment = config["experiments"]["tiny"]
    experiment["methods"] = {"fedcm": METHOD}
    experiment["grid"] = {"method": ["fedavg", "fedcm"]}
    experiment["results"] = ["table", "properties"]
    (project.path / "config.yaml").write_text(yaml.safe_dump(config))
    folder = project.path / "my_methods"
    folder.mkdir()
    text = EXAMPLE.read_text().replace(
        "import torch\n", "import torch\n\nfrom ._own import SCALE\n", 1
    )
    (folder / "fedcm.py").write_text(
        text.replace("alpha, m = self.settings.alpha", "alpha, m = self.settings.alpha / SCALE")
    )
    (folder / "_own.py").write_text(HELPER)
    (folder / "unused.py").write_text(EXAMPLE.read_text().replace('"fedcm"', '"unused"'))
    return folder


def test_a_method_from_a_folder_runs_warm_and_cold_and_again_where_it_changed(project, tmp_path):
    folder = configure(project)
    project.make()
    warm = project.results()
    assert any("-fedcm-" in path for path in warm)
    first = sorted(path for path in warm if "-fedcm-" in path and "participant_" in path)[0]
    assert len(project.make("--force", first, "--executor", "local").trained()) == 1
    assert (project.path / first).read_bytes() == warm[first]
    properties = (project.path / "results/properties/tiny/default.csv").read_text()
    assert "fedcm" in properties
    (folder / "_own.py").write_text(f"# The same.\n{HELPER}")
    (folder / "unused.py").write_text((folder / "unused.py").read_text() + "\n\nMORE = 1\n")
    assert project.plan().jobs == {}
    (folder / "_own.py").write_text(HELPER.replace("1.0", "2.0"))
    plan = project.plan()
    assert len(plan.trained()) == 4
    assert all("-fedcm-" in line for _, _, line in plan.trained())
    assert not plan.jobs.keys() & {"dataset", "partition", "initial_model", "participation"}
    project.make(first)
    assert (project.path / first).read_bytes() != warm[first]

    (folder / "_own.py").write_text("import nowhere\n")
    run = project.call("--dry-run")
    assert run.code == 1
    (line,) = (line for line in run.output.splitlines() if line.startswith("fedstage: "))
    assert line.endswith(
        "my_methods/_own.py, line 1: ModuleNotFoundError: No module named 'nowhere'"
    )
    assert "Traceback" not in run.output


def test_a_bug_of_a_plugin_is_one_line_the_last_however_many_jobs_have_it(project):
    file = configure(project) / "fedcm.py"
    lines = file.read_text().replace("m.get(", "mm.get(").splitlines()
    file.write_text("\n".join(lines))
    number = next(i for i, line in enumerate(lines, 1) if "mm.get" in line)
    run = project.call(short=True)
    assert run.code == 1
    failed, line = run.output.splitlines()[-2:]
    error = f"my_methods/fedcm.py, line {number}: NameError: name 'mm' is not defined"
    assert line == f"fedstage local_training: {error} (2 jobs)"
    assert "Traceback" not in run.output
    assert run.output.count("name 'mm'") == 1
    log = project.path / failed.removeprefix("local_training failed: ")
    assert "Traceback (most recent call last):" in log.read_text()
