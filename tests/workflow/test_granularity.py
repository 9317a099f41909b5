"""A participant, a round or a segment in a job: the same files, and a run can change its mind."""

import re
from collections import Counter

import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.workflow

ROUND = {"granularity": "round"}
SEGMENT = {"granularity": "segment", "segment_rounds": 2}
METHODS = ["fedavg", "feddf", "fedsdd", "fedsdd_basic", "scaffold"]
#: What only segments make in the last round: clients' models, and for FedMD what they have said.
UNREAD = r"0003/group_[12]/(with_head|distilled)\..*|0003/group_./logits/clients-held_out\..*"
SAME_TRIGGERS = ("--rerun-triggers", "mtime", "params")


def without_state(results):
    """Results that somebody reads.

    Round state, or a generator, between the rounds from which a run may go on is none, nor is the
    student of a group other than the main one in the last round, which only a segment makes.
    """
    unread = ("/state.", "/generator.", "round_0003/group_1/distilled")
    return {
        path: content
        for path, content in results.items()
        if not any(mark in path for mark in unread)
    }


@pytest.fixture(scope="module")
def by_participant(new_project):
    project = new_project().configure(rounds=3, methods=METHODS)
    project.make()
    return project


@pytest.fixture
def in_larger_jobs(new_project):
    """A function that makes the same in rounds and in segments, each in a folder of its own."""

    def make(keep=("all", "all"), **settings):
        for kept, execution in zip(keep, (ROUND, SEGMENT), strict=True):
            other = new_project().configure(**settings, keep=kept, execution=execution)
            jobs = other.make().jobs
            assert jobs["local_training"] == jobs["aggregation"] == jobs["distillation"] == 0
            yield other, without_state(other.results())

    return make


@pytest.mark.parametrize("size", [2, "all"])
def test_participants_that_share_a_job_give_the_same_bytes(by_participant, project, size):
    execution = {"clients_per_job": size}
    run = project.configure(rounds=3, methods=METHODS, execution=execution).make()
    assert run.jobs["local_training"] == 0
    # K = 1: both participants in a job; K = 2: one to a group, which needs no other job for it.
    assert run.jobs["cohort_of_group_0_participants_0_to_1"] == 3 + 2 + 3
    assert project.results() == by_participant.results()
    one_by_one = project.configure(rounds=3, methods=METHODS)
    assert "Nothing to be done" in one_by_one.make(*SAME_TRIGGERS).output


def test_every_granularity_gives_the_same_bytes(by_participant, in_larger_jobs):
    for _, found in in_larger_jobs(rounds=3, methods=METHODS):
        assert found == without_state(by_participant.results())


def test_states_and_older_models_pass_between_rounds_in_every_granularity(project, in_larger_jobs):
    """With shared control variates a participant reads the states of all groups.

    Of FedGKD with a student older models are those of the recipe without it.
    """
    methods = ["shared_variates", "shared_fedsdd", "own_statistics", "new_statistics"]
    settings = {"methods": [*methods, "fedgkd", "fedgkd_taught"], "rounds": 4}
    project.configure(**settings).make()
    kept = {path.parts[2].split("-")[3] for path in project.files("results/training/*/*/*/state.*")}
    assert kept == {"scaffold", "fedavg"}  # the latter with statistics of the clients' own
    for _, found in in_larger_jobs(**settings):
        assert found == without_state(project.results())


def test_moments_and_residuals_pass_between_rounds_in_every_granularity(project, in_larger_jobs):
    methods = ["fedadam", "fedavg_stc", "fednova", "moon", "server_of_everything"]
    project.configure(rounds=3, methods=methods).make()
    expected = without_state(project.results())
    kept = {path.parts[2].partition("-seed0-")[0] for path in project.files("results/**/state.*")}
    marks = ["fedavg-adam", "fedavg-stc", "fednova-momentum", "-moon"]
    marks += ["scaffold-local_bn-stc-yogi-K2"]
    assert all(any(name.endswith(mark) for name in kept) for mark in marks)
    for _, found in in_larger_jobs(rounds=3, methods=methods):
        assert found == expected


def test_teachers_that_are_asked_give_the_same_bytes_in_every_granularity(project, in_larger_jobs):
    """Students read their teachers' models, of this round and of others, and no logits."""
    settings = {"rounds": 3, "methods": ["asked", "asked_averages", "feddf_buffered"]}
    run = project.configure(**settings).make()
    assert run.jobs["distillation"] == 3 * 3
    assert run.jobs["logits"] == 3  # of feddf_buffered
    expected = without_state(project.results())
    by_round, by_segment = in_larger_jobs(keep=("all", "needed"), **settings)
    assert {path: by_round[1].get(path) for path in expected} == expected
    common = expected.keys() & by_segment[1].keys()
    assert {path: by_segment[1][path] for path in common} == {
        path: expected[path] for path in common
    }
    assert any("/round_0003/group_0/distilled." in path for path in common)


def test_generators_pass_between_rounds_in_every_granularity(project, in_larger_jobs):
    """With the state of clients beside them. Label counts are among the bytes that are sent."""
    methods = ["fedavg", "fedftg", "fedftg_as_released"]
    run = project.configure(rounds=4, methods=methods).make()
    rules = Counter(rule.partition("_with")[0] for rule in run.jobs.elements())
    assert rules["distillation"] == 2 * 4
    assert run.jobs["logits"] == 0
    # Of FedFTG's rounds the first is that of FedAvg; SCAFFOLD's are not.
    assert len(run.trained()) == 2 * (4 + 3 + 4)
    kept = project.files("results/training/*/*/*/generator.*")
    assert [path.parts[-3] for path in kept] == ["round_0004"] * 2
    sent = {}
    for path in project.files("results/training/*/metrics/*/*.parquet"):
        sent[path.parts[2]] = pq.read_table(project.path / path)["bytes_up"].to_pylist()
    names = ("logistic_regression-fedavg", "fedavg-designated-fedftg")
    plain, taught = (next(sent[key] for key in sent if f"-{name}-seed" in key) for name in names)
    assert [one - other for one, other in zip(taught, plain, strict=True)] == [4 * 10] * 4
    expected = without_state(project.results())
    for other, found in in_larger_jobs(rounds=4, methods=methods):
        assert found == expected
        assert other.files("results/training/*/round_0004/*/generator.*") == kept


def test_odds_of_discriminators_weigh_votes_in_every_granularity(project, in_larger_jobs):
    """One generator, and a discriminator a client, for all rounds and all who teach by them."""
    methods = ["feddf", "fedgo"]
    run = project.configure(rounds=3, methods=methods).make()
    clients = len(project.files("results/discriminators/*/client_*.safetensors"))
    expected = {"public_generator": 1, "client_discriminator": clients, "client_odds": 1}
    assert {name: run.jobs[name] for name in expected} == expected
    assert run.jobs["distillation"] == 2 * 3
    assert clients > 1
    for _, found in in_larger_jobs(rounds=3, methods=methods):
        assert found == without_state(project.results())


def test_heads_and_logits_pass_between_groups_in_every_granularity(project, in_larger_jobs):
    """Clients learn of one another by the server's head, its model, or logits of other groups."""
    methods = ["fedet", "dsfl", "scarlet", "fedgems", "fedmd", "fedgkt"]
    run = project.configure(rounds=3, methods=methods).make()
    assert run.jobs["feature_training"] == run.jobs["cached_labels"] == 3
    assert run.jobs["selected_labels"] == 3
    assert run.jobs["head_sharing"] == 3 + 2 * 2  # of the server's model, and of those for round 2
    expected = without_state(project.results())
    for _, found in in_larger_jobs(rounds=3, methods=methods):
        assert {path: found.get(path) for path in expected} == expected
        unread = [path.rpartition("/round_")[2] for path in found.keys() - expected.keys()]
        assert all(re.fullmatch(UNREAD, path) for path in unread), unread


def test_a_segment_does_not_keep_updates_that_nobody_reads(by_participant, project):
    project.configure(rounds=3, methods=METHODS, execution=SEGMENT, keep="models").make()
    updates = [
        str(path) for path in project.files("results/training/*/round_*/group_*/participant_*")
    ]
    assert updates
    assert all("-fedavg-seed0" in path and "/round_0001/" in path for path in updates)  # feddf's
    kept = without_state(by_participant.results())
    expected = {path: content for path, content in kept.items() if "/participant_" not in path}
    found = without_state(project.results())
    assert {
        path: content for path, content in found.items() if "/participant_" not in path
    } == expected


def test_drawn_members_and_servers_that_judge_give_the_same_bytes(project, new_project):
    methods = ["bayesian", "fedbe_as_released", "feddf_original", "two_architectures"]
    project.configure(rounds=3, methods=methods).make()
    other = new_project()
    run = other.configure(rounds=3, methods=methods, execution=SEGMENT, keep="models").make()
    assert run.jobs["local_training"] == run.jobs["distillation"] == 0
    found, expected = without_state(other.results()), without_state(project.results())
    assert {path: expected[path] for path in found} == found
    assert all("/participant_" in path for path in expected.keys() - found.keys())


def test_only_what_some_job_reads_is_kept(by_participant, project):
    settings = {"methods": METHODS, "execution": SEGMENT, "keep": "needed", "evaluate_every": 3}
    project.configure(rounds=3, **settings).make()
    everything = by_participant.results()
    found = {
        path: content
        for path, content in without_state(project.results()).items()
        if "/round_" in path
    }
    assert found == {path: everything[path] for path in found}
    rounds = {
        kind: {path.partition("/round_")[2][:4] for path in found if kind in path}
        for kind in ("/participant_", "/participants.")
    }
    # The first teacher of feddf reads its participants' updates; evaluations read the tables.
    assert rounds == {"/participant_": {"0001"}, "/participants.": {"0003"}}
    assert "Nothing to be done" in project.make(*SAME_TRIGGERS).output
    plan = project.configure(rounds=4, **settings).plan(*SAME_TRIGGERS)
    assert not any("segment_0001" in rule or "segment_0002" in rule for rule in plan.jobs)


@pytest.mark.parametrize("execution", [{}, ROUND, SEGMENT], ids=["participant", "round", "segment"])
def test_four_hundred_rounds_are_a_graph_like_any_other(project, execution):
    """A chain of rounds is followed by recursion, which Python ends at a depth of its own."""
    methods = ["fedavg", "fedsdd"]
    plan = project.configure(rounds=400, methods=methods, execution=execution).plan()
    assert plan.jobs["evaluation"] == 2
    if not execution:
        assert max(round_ for round_, _, _ in plan.trained()) == 400


@pytest.mark.parametrize(
    ("begun", "continued"),
    [(SEGMENT, {}), ({}, SEGMENT), (ROUND, SEGMENT), (SEGMENT, ROUND)],
    ids=["segment-participant", "participant-segment", "round-segment", "segment-round"],
)
def test_a_run_goes_on_in_another_granularity(by_participant, project, begun, continued):
    methods = ["fedavg", "fedsdd", "scaffold"]
    project.configure(rounds=2, methods=methods, execution=begun).make()
    same = project.configure(rounds=2, methods=methods, execution=continued)
    assert "Nothing to be done" in same.make(*SAME_TRIGGERS).output
    longer = project.configure(rounds=3, methods=methods, execution=continued)
    plan = longer.plan(*SAME_TRIGGERS)
    assert plan.jobs["evaluation"] == 3
    assert all(round_ == 3 for round_, _, _ in plan.trained())
    assert not any("segment_0001" in rule or "segment_0002" in rule for rule in plan.jobs)
    longer.make(*SAME_TRIGGERS)
    expected = without_state(by_participant.results())
    for path, content in without_state(project.results()).items():
        if "/training/" in path and "/metrics/" not in path:
            assert content == expected[path], path


def test_a_segment_called_alone_finds_its_rule(project):
    """As on a compute node: a wildcard is all that names the recipe."""
    project.configure(execution=SEGMENT, methods=["fedavg"]).make()
    model = project.recipe() / "round_0001/group_0/aggregated.safetensors"
    before = model.read_bytes()
    rule = "segment_0001_0002_groups_0"
    model.unlink()
    project.job(f"{rule}:recipe={project.recipe().name}", rule)
    assert model.read_bytes() == before
