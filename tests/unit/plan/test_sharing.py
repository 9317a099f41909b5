"""What sharing saves, counted from the jobs of the graph."""

import pytest
from tests.shared.recipes import METHODS, recipe

from fedstage.plan.runs import describe_sharing, trainings
from fedstage.plan.stages import jobs_of


@pytest.mark.parametrize("settings", METHODS.values(), ids=METHODS.keys())
def test_trainings_are_those_of_the_graph(settings):
    made = recipe(**settings)
    jobs = [job for job in jobs_of(made, 2) if job.stage == "local_training"]
    found = trainings(made, 2)
    assert sum(found.values()) == len(jobs)
    assert found.keys() <= {job.file for job in jobs}


def test_runs_that_train_the_same_clients_count_once():
    plain, longer = (recipe(), 2), (recipe(), 3)
    one = sum(trainings(*plain).values())
    assert describe_sharing([[plain]], 1) == ""
    told = f"{one} trainings for 2 methods; apart they would be {2 * one}"
    assert describe_sharing([[plain], [plain]], 2) == told
    assert describe_sharing([[plain], [longer]], 2).startswith(f"{3 * one // 2} trainings")
