"""What a change makes anew, and what it does not."""

import pytest

pytestmark = pytest.mark.workflow


def test_a_finished_run_makes_every_result(finished):
    assert finished.files("results/tables/tiny/default.*") != []
    assert len(finished.files("results/training/*/metrics/*/*.parquet")) == 3
    assert len(finished.files("results/figures/tiny/*")) == 2


def test_second_call_does_nothing(copy):
    run = copy.make()
    assert run.jobs == {}
    assert "Nothing to be done" in run.output
    table = "results/tables/tiny/default.md"
    assert f"\n{table}\n\n" in run.output
    head = (copy.path / table).read_text().partition("\n- ")[0]
    assert head in run.output  # without its legend
    assert table not in copy.plan().output


def test_who_does_the_work_changes_nothing(copy):
    execution = {"workers": 1, "workers_per_gpu": 2, "clients_per_gpu": 3, "gpu": 1, "timeout": 60}
    run = copy.configure(execution=execution).plan()
    assert run.jobs == {}, run.output


def test_deleted_metrics_rerun_one_evaluation_and_the_tables(copy):
    before = copy.results()
    (metrics,) = (copy.recipe() / "metrics").rglob("*.parquet")
    metrics.unlink()
    run = copy.make()
    assert run.jobs == {
        "evaluation": 1, "scores": 1, "table": 1, "figure": 1, "all": 1,
    }  # fmt: skip
    assert copy.results() == before


def test_temperature_reaches_only_students(copy):
    server = {"steps": 5, "batch_size": 32, "learning_rate": 0.05, "temperature": 2.0}
    plan = copy.configure(server=server).plan()
    assert plan.jobs["partition"] == plan.jobs["dataset"] == plan.jobs["participation"] == 0
    assert plan.jobs["initial_model"] == 0
    assert plan.jobs["distillation"] == 2
    # Of two groups of one participant each, only group 0 starts round 2 from a student.
    assert [(round_, participant) for round_, participant, _ in plan.trained()] == [(2, 0)]


def test_two_more_rounds_train_two_rounds(copy, new_project):
    run = copy.configure(rounds=4).make()
    assert {round_ for round_, _, _ in run.trained()} == {3, 4}
    assert run.jobs["local_training"] == 2 * 3 * 2  # rounds x methods x participants
    # Rounds x groups of fedavg, fedsdd, scaffold.
    assert run.jobs["aggregation"] + run.jobs["aggregation_with_state"] == 2 * (1 + 2 + 1)
    assert rounds_of_states(copy) == ["round_0004"]
    fresh = new_project().configure(rounds=4, methods=["scaffold"])
    fresh.make()
    longer = copy.results()
    for path, content in fresh.results().items():
        if "/training/" in path or "/partitions/" in path:
            assert longer[path] == content, path


def rounds_of_states(project):
    return [path.parts[3] for path in project.files("results/training/*/round_*/*/state.*")]


def test_a_state_that_was_used_up_is_made_again_only_for_more_rounds(copy):
    """With the rounds before it, so a run of which there is everything does not ask for it."""
    copy.configure(rounds=3, methods=["scaffold"]).make()
    before = copy.results()
    assert rounds_of_states(copy) == ["round_0003"]
    shorter = copy.configure(rounds=2, methods=["scaffold"]).make()
    assert not shorter.trained()
    assert rounds_of_states(copy) == ["round_0003"]
    for state in copy.files("results/training/*/round_*/*/state.*"):
        (copy.path / state).unlink()
    run = copy.configure(rounds=4, methods=["scaffold"]).make()
    assert {round_ for round_, _, _ in run.trained()} == {2, 3, 4}
    assert rounds_of_states(copy) == ["round_0004"]
    models = {path: content for path, content in before.items() if "/round_" in path}
    after = copy.results()
    assert {path: after.get(path) for path in models if "/state." not in path} == {
        path: content for path, content in models.items() if "/state." not in path
    }


def test_a_table_alone_keeps_no_state_and_the_whole_target_trains_nothing_for_it(project):
    project.configure(methods=["scaffold"]).make("results/tables/tiny/default.csv")
    assert rounds_of_states(project) == []
    assert not project.plan().trained()


def test_one_more_seed_leaves_the_first_alone(copy):
    config = copy.configure()
    plan = config.configure(seed=1, methods=["fedavg"]).plan()
    assert plan.jobs["partition"] == plan.jobs["participation"] == plan.jobs["initial_model"] == 1
    assert plan.jobs["dataset"] == 0
