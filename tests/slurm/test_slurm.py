"""The workflow on a real SLURM, and the same bytes after all that can happen to a job there."""

import os
import signal

import pytest
import yaml

pytestmark = pytest.mark.slurm

# The cheap stages before the first round as one submission.
RULES = ("dataset", "partition", "initial_model")
PREPARATION = ["--groups", *(f"{rule}=preparation" for rule in RULES)]
# Clients that train alone two at a time, as many as a node has cores.
ALONE = ["local_model=alone", "--group-components", "alone=2"]

# What workflow/docs/cluster.md gives for a cluster with a partition for GPUs.
PARTITIONS = {"partitions": {"main": {"max_runtime": 1440}, "gpu": {"max_gpu": 2}}}
KIND_OF_GPU = ["--default-resources", "runtime=10", "mem_mb=100", "gpu=0", "gpu_model=fake"]


@pytest.fixture(scope="module")
def reference(new_project):
    """Two rounds on this machine."""
    project = new_project("reference", rounds=2)
    project.make()
    return project


@pytest.fixture(scope="module")
def first_round(submitter, new_project):
    """One round on the cluster: the session, and its jobs."""
    session = submitter(new_project("cluster", rounds=1))
    before = len(session.cluster.jobs())
    session.finish(session.start("--until", "aggregation", *PREPARATION))
    return session, session.cluster.jobs()[before:]


def test_stages_are_submitted_with_the_gpus_they_ask_for(first_round):
    _, jobs = first_round
    assert {(job.state, job.partition) for job in jobs} == {("COMPLETED", "main")}
    assert sorted((job.rule, job.gpus) for job in jobs) == [
        ("aggregation", "N/A"),
        ("local_training", "gres:gpu:1"),
        ("local_training", "gres:gpu:1"),
        ("participation", "N/A"),
        ("preparation_dataset_initial_model_partition", "N/A"),
    ]


def test_a_run_goes_on_after_its_login_session_was_killed(first_round, reference, reconfigure):
    """A round is now one job, in the partition and on the kind of GPU that it needs."""
    session, first = first_round
    reconfigure(session.project, rounds=2, execution={"granularity": "round"})
    path = session.project.path / "partitions.yaml"
    path.write_text(yaml.safe_dump(PARTITIONS))

    def jobs():
        return [job for job in session.cluster.jobs() if job.id > first[-1].id]

    options = ["--slurm-partition-config", str(path), *KIND_OF_GPU]
    running = session.start(*options)
    session.wait_until(jobs, "the round is submitted")
    running.kill()
    running.wait()
    session.wait_until(lambda: jobs()[0].state == "COMPLETED", "the round is finished")
    session.project.make("--unlock")
    session.finish(session.start(*options))
    asked = {job.rule.partition("_group")[0]: (job.partition, job.gpus) for job in jobs()}
    assert len(jobs()) == len(asked)
    assert asked == {
        "segment_0002_0002": ("gpu", "gres:gpu:fake:1"),
        "evaluation": ("gpu", "gres:gpu:fake:1"),
        "scores": ("main", "gres:gpu:fake:0"),
        "table": ("main", "gres:gpu:fake:0"),
    }
    results, expected = session.project.results(), reference.results()
    assert {path: results[path] for path in expected} == expected


# --- the quickstart -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def quickstart(new_quickstart):
    """A one-shot method on this machine."""
    project = new_quickstart("quickstart")
    project.make()
    return project


def test_the_quickstart_ends_in_the_same_bytes(submitter, new_quickstart, quickstart):
    session = submitter(new_quickstart("quickstart_on_the_cluster"))
    before = len(session.cluster.jobs())
    session.finish(session.start(*PREPARATION, *ALONE))
    jobs = session.cluster.jobs()[before:]
    assert {job.state for job in jobs} == {"COMPLETED"}
    assert [job.rule for job in jobs].count("alone_local_model") == 1  # both clients
    assert session.project.results() == quickstart.results()


# --- what may happen to a job ---------------------------------------------------------------------


def cancel(session, job, stage):
    session.cluster.call("scancel", str(job.id))


def kill(session, job, stage):
    """As the system does where memory runs out."""
    os.kill(stage, signal.SIGKILL)


def fail_node(session, job, stage):
    change = ["scontrol", "update", "nodename=node1"]
    assert session.cluster.steps()
    session.cluster.call(*change, "state=down", "reason=test")
    # A node that comes back with steps of requeued jobs is told once more to kill them, which could
    # reach the jobs that have started again.
    session.wait_until(lambda: not session.cluster.steps(), "all jobs on the node have ended")
    session.cluster.call(*change, "state=resume")


@pytest.fixture(scope="module")
def trained(new_project):
    """Two participants that train for seconds, on this machine."""
    client = {"steps": 25000, "batch_size": 32, "learning_rate": 0.001}
    project = new_project("trained", rounds=1, client=client)
    project.make("--until", "local_training")
    return project


@pytest.fixture(scope="module")
def train_again(submitter, copy_of, trained):
    """A function that trains them on the cluster, where something happens to the first jobs.

    It returns all submissions.
    """

    def train(*hits):
        session = submitter(copy_of(trained))
        for update in session.project.files("results/training/*/round_*/group_*/participant_*"):
            (session.project.path / update).unlink()
        before = len(session.cluster.jobs())
        running = session.start("--until", "local_training")
        session.wait_until(lambda: len(session.cluster.jobs()) == before + 2, "both are submitted")
        first = session.cluster.jobs()[before:]
        hit_when_they_run(session, dict(zip(first, hits, strict=False)))
        session.finish(running)
        for log in (session.project.path / "output.txt", *session.cluster.folder.glob("*.log")):
            print(log.name, log.read_text(errors="replace"), sep="\n")  # seen if the test fails
        assert session.project.results() == trained.results()
        for job in first:
            session.wait_until(
                lambda job=job: not session.cluster.processes(SLURM_JOB_ID=job.id), f"{job} is gone"
            )
        return session.cluster.jobs()[before:]

    return train


def hit_when_they_run(session, hits):
    """Let happen to each job what shall happen to it, as soon as its stage runs."""

    def all_hit():
        for job in list(hits):
            if stage := session.stage(job):
                hits.pop(job)(session, job, stage)
        return not hits

    session.wait_until(all_hit, "the jobs train")


@pytest.fixture(scope="module")
def cancelled_and_killed(train_again):
    """The submissions of a participant whose job is cancelled, and of one whose job is killed."""
    jobs = train_again(cancel, kill)
    assert len(jobs) == 4
    # Which is submitted first is chance; the comment names the participant.
    return [[job for job in jobs if job.name == first.name] for first in jobs[:2]]


def test_a_cancelled_job_is_submitted_again_and_asks_for_more(cancelled_and_killed):
    jobs, _ = cancelled_and_killed
    assert [job.state for job in jobs] == ["CANCELLED", "COMPLETED"]
    assert [job.memory for job in jobs] == ["4000M", "8000M"]


def test_a_job_killed_by_the_system_is_submitted_again(cancelled_and_killed):
    _, jobs = cancelled_and_killed
    assert [job.state for job in jobs] == ["FAILED", "COMPLETED"]


def test_jobs_of_a_failed_node_start_again_when_there_is_one(train_again):
    jobs = train_again(fail_node)
    assert [(job.state, job.restarts) for job in jobs] == [("COMPLETED", 1)] * 2


# --- the cluster itself ---------------------------------------------------------------------------


def test_a_cluster_leaves_no_process(another_cluster, wait_until):
    with another_cluster as cluster:
        cluster.call("sbatch", "--output=/dev/null", "--wrap", "setsid sleep 600 & sleep 600")
        wait_until(lambda: len(cluster.processes(SLURM_JOB_ID=1)) >= 3, "the job runs")
    assert cluster.processes() == []
