"""The workflow on a real SLURM, and the same bytes after all that can happen to a job there."""

import os
import signal

import pytest

pytestmark = pytest.mark.slurm

# The cheap stages before the first round are one submission, as users may want it.
PREPARATION = ["dataset", "partition", "participation", "initial_model"]
GROUPS = ["--groups", *(f"{rule}=preparation" for rule in PREPARATION)]


@pytest.fixture(scope="module")
def reference(new_project):
    """Two rounds on this machine."""
    project = new_project("reference", rounds=2)
    project.make()
    return project


@pytest.fixture(scope="module")
def first_round(submitter, new_project):
    """One round on the cluster, a job for each participant: the session, its jobs and pools."""
    session = submitter(new_project("cluster", rounds=1))
    before = len(session.cluster.jobs())
    pools = session.finish(session.start(*GROUPS))
    return session, session.cluster.jobs()[before:], pools


def test_a_run_on_the_cluster_ends_in_the_same_bytes(first_round, reference):
    session, jobs, _ = first_round
    assert {job.state for job in jobs} == {"COMPLETED"}
    results, expected = session.project.results(), reference.results()
    # The rounds that tables and metrics are of are all that differs.
    shared = {path for path in expected if "/tables/" not in path and "/metrics/" not in path}
    shared -= {path for path in expected if "/round_0002/" in path}
    assert any("/round_0001/" in path for path in shared)
    assert {path: results[path] for path in shared} == {path: expected[path] for path in shared}
