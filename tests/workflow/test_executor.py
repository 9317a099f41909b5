"""Which jobs run in workers, which need not run, and what is said of those that fail."""

import asyncio
import os
from base64 import urlsafe_b64encode
from types import SimpleNamespace

import pytest
from snakemake.exceptions import SpawnedJobError
from snakemake.jobs import Reason
from tests.shared.settings import federated

from fedstage.errors import FedstageError
from fedstage.execution.executor import Executor, has_same_inputs, stage_arguments
from fedstage.plan.data_files import participation_table
from fedstage.settings.recipes import Recipe
from fedstage.storage.files import load_json
from fedstage.storage.planned import write_recipe

from .conftest import Project

pytestmark = pytest.mark.workflow

JOB = participation_table(Recipe.model_validate(federated()), 1).job
PLAN, FOLDER, LOGS = JOB.config, JOB.folder, JOB.folder.replace("results", "results/logs", 1)
MADE = {"middle": "rounds_0001-0100", "last": "rounds_0101-0200"}
SNAKEFILE = """
rule all:
    input:
        "FOLDER/rounds_0101-0200.parquet",

rule first:
    input:
        "source",
    output:
        "first",
    shell:
        "head -1 {input} > {output}"

rule middle:
    input:
        "first",
    output:
        MARK("FOLDER/rounds_0001-0100.parquet"),
    params:
        number=config.get("number", 10),
    log:
        "LOGS/rounds_0001-0100.json",
    shell:
        "fedstage run participation recipe.yaml first=1 last=100"

rule last:
    input:
        "FOLDER/rounds_0001-0100.parquet",
    output:
        "FOLDER/rounds_0101-0200.parquet",
    log:
        "LOGS/rounds_0101-0200.json",
    shell:
        "fedstage run participation recipe.yaml first=101 last=200"
"""


class Chain:
    """A folder with a chain of jobs, of which the first shows stages one line of a file."""

    def __init__(self, folder, mark=""):
        self.folder = folder
        text = SNAKEFILE.replace("MARK", mark).replace("FOLDER", FOLDER).replace("LOGS", LOGS)
        (folder / "Snakefile").write_text(text)
        write_recipe(str(folder / "recipe.yaml"), PLAN)
        self.write("one\n")

    def write(self, text):
        (self.folder / "source").write_text(text)

    def run(self, *options, executor="fedstage"):
        """Make the last file; return which stages have run."""
        before = self._logs()
        triggers = ("--workflow-profile", "none", "--rerun-triggers", "mtime", "params")
        made = Project(self.folder, self.folder / "Snakefile").make(
            "--executor", executor, *triggers, *options, cores=1, short=True
        )
        self.output = made.output
        return [name for name, time in self._logs().items() if before.get(name) != time]

    def _logs(self):
        logs = {name: self.folder / LOGS / f"{made}.json" for name, made in MADE.items()}
        return {name: log.stat().st_mtime_ns for name, log in logs.items() if log.exists()}


@pytest.fixture
def chain(tmp_path):
    made = Chain(tmp_path)
    assert sorted(made.run()) == ["last", "middle"]
    return made


def time_of(chain, name):
    return path_of(chain.folder, name).stat().st_mtime_ns


def path_of(folder, name):
    return folder / (f"{FOLDER}/{MADE[name]}.parquet" if name in MADE else name)


def test_an_edit_that_changes_no_bytes_runs_nothing_further(chain):
    chain.write("one\nanother that nobody reads\n")
    before = time_of(chain, "last")
    assert chain.run() == []
    assert chain.output.count("its outputs are kept") == 2
    assert time_of(chain, "last") > before
    assert time_of(chain, "last") >= time_of(chain, "middle") >= time_of(chain, "first")
    assert chain.run() == []
    assert "Nothing to be done" in chain.output


def test_an_edit_that_changes_bytes_runs_what_reads_them_and_no_more(chain):
    chain.write("two\n")
    assert chain.run() == ["middle"]  # which writes what it did
    chain.write("one\n")
    assert chain.run() == ["middle"]


def test_what_has_another_reason_runs(chain):
    chain.write("one\n2\n")
    assert chain.run("--forcerun", "first", "middle") == ["middle"]
    chain.write("one\n3\n")
    assert sorted(chain.run("--forceall")) == ["last", "middle"]
    chain.write("one\n4\n")
    assert chain.run("--config", "number=2") == ["middle"]
    chain.write("one\n5\n")
    path_of(chain.folder, "last").unlink()
    assert chain.run("--config", "number=2") == ["last"]


def test_an_output_that_was_deleted_after_its_use_is_made_again(tmp_path):
    chain = Chain(tmp_path, mark="temp")
    chain.run()
    chain.write("one\n2\n")
    assert chain.run() == ["middle"]
    assert not path_of(tmp_path, "middle").exists()


def test_a_job_that_was_interrupted_runs_again(chain):
    """Snakemake marks the outputs of running jobs, and may look at the marks of no job below."""
    marks = chain.folder / ".snakemake/incomplete"
    marks.mkdir(exist_ok=True)
    (marks / urlsafe_b64encode(f"{FOLDER}/{MADE['last']}.parquet".encode()).decode()).touch()
    chain.write("one\n2\n")
    assert chain.run("--rerun-incomplete") == ["last"]


class File(str):
    """A file as Snakemake sees it."""

    is_storage = False

    async def exists(self):
        return self != "missing"

    async def is_same_checksum(self, recorded, largest):
        return recorded == f"of {self}"


def kept(output, changed=(), recorded="of file", **reason):
    """Whether a job keeps its outputs."""
    file = File("file")
    notes = SimpleNamespace(
        **{f"{what}_changed": lambda job, what=what: [what] if what in changed else []
           for what in ("params", "input", "code")},
        input_checksums=lambda job, file: {recorded},
    )  # fmt: skip
    told = Reason()
    told.updated_input_run.add(file)
    for name, value in reason.items():
        setattr(told, name, value)
    dag = SimpleNamespace(
        reason=lambda job: told, forcerules=(), forcefiles=set(), max_checksum_file_size=1
    )
    job = SimpleNamespace(rule="rule", input=[file], output=[File("present"), output])
    workflow = SimpleNamespace(dag=dag, persistence=notes)
    return asyncio.run(has_same_inputs(workflow, job))


def test_outputs_are_kept_where_nothing_but_the_bytes_of_inputs_could_have_changed():
    assert kept(File("present"))
    assert not kept(File("missing"))  # one that nobody reads: else Snakemake says so
    stored = File("present")
    stored.is_storage = True
    assert not kept(stored)
    assert not any(kept(File("present"), [what]) for what in ("params", "input", "code"))
    assert not kept(File("present"), recorded=None)
    assert not kept(File("present"), recorded="of another")
    assert not kept(File("present"), forced=True)


def test_without_the_executor_stages_are_processes_of_their_own(tmp_path):
    warm, cold = tmp_path / "warm", tmp_path / "cold"
    for folder, executor in ((warm, "fedstage"), (cold, "local")):
        folder.mkdir()
        assert sorted(Chain(folder).run(executor=executor)) == ["last", "middle"]
    for name in ("middle", "last"):
        assert path_of(warm, name).read_bytes() == path_of(cold, name).read_bytes()


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("fedstage run partition 'a b'", ["run", "partition", "a b"]),
        ("fedstage verify", []),
        ("fedstage", []),
        ("printf x > run", []),
        ("time fedstage run partition a", []),
        ("", []),
        (None, []),
    ],
)  # fmt: skip
def test_commands_of_stages_run_in_workers(command, arguments):
    assert stage_arguments(command) == arguments


class Dying:
    def run(self, arguments):
        raise FedstageError("the worker was killed by SIGKILL")


class Failing:
    def run(self, arguments):
        return 1


def test_what_became_of_a_worker_is_one_line_also_in_the_jobs_record(tmp_path, capsys):
    executor = object.__new__(Executor)
    executor._pool = Dying()
    told = "fedstage partition: the worker was killed by SIGKILL\n"
    for logs in ([str(tmp_path / "a.json")], [str(tmp_path / "no" / os.devnull)], []):
        with pytest.raises(SpawnedJobError):
            executor._run(["run", "partition"], logs)
        assert capsys.readouterr().err == told
    assert load_json(tmp_path / "a.json")["error"] == [told.rstrip("\n")]
    executor._pool = Failing()  # which has said why itself
    with pytest.raises(SpawnedJobError):
        executor._run(["run", "partition"], [])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("limit", "looks"), [("100/1s", 1 + 3), ("1/1s", 1 + 3 + 3)])
def test_ready_jobs_are_looked_at_when_one_has_finished_or_a_limit_was_reached(
    tmp_path, limit, looks
):
    """By default Snakemake looks again each second, and once more so for each job before."""
    (tmp_path / "Snakefile").write_text("""
from snakemake.scheduling.job_scheduler import JobScheduler
from fedstage.execution.executor import look_less_often

look_less_often(JobScheduler)

rule all:
    input:
        ["a", "b", "c"],

rule one:
    output:
        "{name}",
    shell:
        "sleep 1.1; touch {output}"
""")
    options = ("--max-jobs-per-timespan", limit, "--workflow-profile", "none", "--verbose")
    made = Project(tmp_path, tmp_path / "Snakefile").make(*options, cores=1, short=True)
    assert 1 + 3 <= made.output.count("Ready jobs: ") <= looks
