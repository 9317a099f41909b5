"""The workflow on a real SLURM, and the same bytes after all that can happen to a job there."""

import os
import signal

import pytest
import yaml

pytestmark = pytest.mark.slurm

# The cheap stages before the first round as one submission.
RULES = ("dataset", "partition", "initial_model")
PREPARATION = ["--groups", *(f"{rule}=preparation" for rule in RULES)]

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
    """One round on the cluster: the session, its jobs, and the pools there were."""
    session = submitter(new_project("cluster", rounds=1))
    before = len(session.cluster.jobs())
    pools = session.finish(session.start("--until", "aggregation", *PREPARATION))
    return session, session.cluster.jobs()[before:], pools


def test_stages_are_submitted_with_the_gpus_they_ask_for(first_round):
    _, jobs, _ = first_round
    assert {(job.state, job.partition) for job in jobs} == {("COMPLETED", "main")}
    assert sorted((job.rule, job.gpus) for job in jobs) == [
        ("aggregation", "N/A"),
        ("local_training", "gres:gpu:1"),
        ("local_training", "gres:gpu:1"),
        ("participation", "N/A"),
        ("preparation_dataset_initial_model_partition", "N/A"),
    ]


def test_the_stages_of_a_submission_share_a_pool_that_ends_with_it(first_round, wait_until):
    session, jobs, pools = first_round
    for job in jobs:
        assert len([pool for pool in pools if pool.belongs_to(job)]) == 1, job
    wait_until(lambda: session.pools() == set(), "no pool outlives its job", seconds=10)


def test_pools_of_jobs_listen_in_folders_of_their_node(first_round):
    session, jobs, pools = first_round
    for pool in pools:
        in_a_job = any(pool.belongs_to(job) for job in jobs)
        assert pool.socket.is_relative_to(session.temporary if in_a_job else session.session)


def test_a_run_goes_on_after_its_login_session_was_killed(
    first_round, reference, reconfigure, wait_until
):
    """A round is now one job, in the partition and on the kind of GPU that it needs."""
    session, first, _ = first_round
    reconfigure(session.project, rounds=2, execution={"granularity": "round"})
    path = session.project.path / "partitions.yaml"
    path.write_text(yaml.safe_dump(PARTITIONS))

    def jobs():
        return [job for job in session.cluster.jobs() if job.id > first[-1].id]

    options = ["--slurm-partition-config", str(path), *KIND_OF_GPU]
    running = session.start(*options)
    wait_until(jobs, "the round is submitted")
    running.kill()
    running.wait()
    wait_until(lambda: jobs()[0].state == "COMPLETED", "the round is finished")
    session.project.make("--unlock")
    session.finish(session.start(*options))
    asked = {job.rule.partition("_group")[0]: (job.partition, job.gpus) for job in jobs()}
    assert len(jobs()) == len(asked)
    assert asked == {
        "segment_0002_0002": ("gpu", "gres:gpu:fake:1"),
        "evaluation": ("gpu", "gres:gpu:fake:1"),
        "tables": ("main", "gres:gpu:fake:0"),
        "figures": ("main", "gres:gpu:fake:0"),
    }
    results, expected = session.project.results(), reference.results()
    assert {path: results[path] for path in expected} == expected


# --- what may happen to a job ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(new_project):
    """A participant that trains for seconds, on this machine."""
    client = {"steps": 25000, "batch_size": 32, "learning_rate": 0.001}
    project = new_project("trained", rounds=1, participants=1, client=client)
    project.make("--until", "local_training")
    return project


@pytest.fixture
def trains_again_after(submitter, copy_of, trained, wait_until):
    """A function that lets something happen to a job that trains, and returns its submissions."""

    def check(happens):
        project = copy_of(trained)
        (update,) = project.files("results/training/*/round_*/group_*/slot_*")
        (project.path / update).unlink()
        session = submitter(project)
        before = len(session.cluster.jobs())
        running = session.start("--until", "local_training")
        wait_until(lambda: len(session.cluster.jobs()) > before, "the job is submitted")
        job = session.cluster.jobs()[before]
        wait_until(lambda: session.busy_worker(job), "the job trains")
        happens(session, job)
        session.finish(running)
        assert project.results() == trained.results()
        wait_until(lambda: session.pools() == set(), "no pool outlives its job", seconds=10)
        wait_until(lambda: not session.cluster.processes(SLURM_JOB_ID=job.id), "nothing is left")
        return session.cluster.jobs()[before:]

    return check


def test_a_cancelled_job_is_submitted_again_and_asks_for_more(trains_again_after):
    jobs = trains_again_after(lambda session, job: session.cluster.call("scancel", str(job.id)))
    assert [job.state for job in jobs] == ["CANCELLED", "COMPLETED"]
    assert [job.memory for job in jobs] == ["4000M", "8000M"]


def test_a_job_killed_by_the_system_is_submitted_again(trains_again_after):
    """As where memory runs out."""
    jobs = trains_again_after(
        lambda session, job: os.kill(session.busy_worker(job), signal.SIGKILL)
    )
    assert [job.state for job in jobs] == ["FAILED", "COMPLETED"]


def test_a_job_of_a_failed_node_starts_again_when_there_is_one(trains_again_after, wait_until):
    def fail(session, job):
        change = ["scontrol", "update", "nodename=node1"]
        session.cluster.call(*change, "state=down", "reason=test")
        wait_until(lambda: session.busy_worker(job) is None, "the job has ended")
        session.cluster.call(*change, "state=resume")

    (job,) = trains_again_after(fail)
    assert (job.state, job.restarts) == ("COMPLETED", 1)


# --- the cluster itself ---------------------------------------------------------------------------


def test_a_cluster_leaves_no_process(another_cluster, wait_until):
    with another_cluster as cluster:
        cluster.call("sbatch", "--output=/dev/null", "--wrap", "setsid sleep 600 & sleep 600")
        wait_until(lambda: len(cluster.processes(SLURM_JOB_ID=1)) >= 3, "the job runs")
    assert cluster.processes() == []
