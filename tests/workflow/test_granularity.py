"""A participant or a segment in a job: the same files, and a run can change its mind."""

import re
from collections import Counter

import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.workflow

ROUND = {"granularity": "round"}
SEGMENT = {"granularity": "segment", "segment_rounds": 2}
METHODS = ["fedavg", "feddf", "fedsdd", "fedsdd_basic", "scaffold"]
ASKED = ["asked", "asked_averages", "feddf_buffered"]
DRAWN = ["bayesian", "fedbe_as_released", "feddf_original", "two_architectures"]
GENERATORS = ["fedavg", "fedftg", "fedftg_as_released"]
HEADS = ["fedet", "dsfl", "scarlet", "fedgems", "fedmd", "fedgkt"]
ODDS = ["feddf", "fedgo"]
#: Of FedGKD with a student older models are from the recipe without it.
STATES = ["own_statistics", "new_statistics"]
OLDER = ["fedgkd", "fedgkd_taught"]
MOMENTS = ["fedadam", "fedavg_stc", "fednova", "moon", "server_of_everything"]
EVERYTHING = [
    *dict.fromkeys(METHODS + STATES + OLDER + MOMENTS + ASKED + GENERATORS + ODDS + HEADS + DRAWN)
]
#: What only segments make in the last round: clients' models, and for FedMD what they have said.
UNREAD = r"0003/group_[12]/(with_head|distilled)\..*|0003/group_./logits/clients-held_out\..*"


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
    project = new_project().configure(rounds=3, methods=EVERYTHING)
    project.make()
    return project


@pytest.fixture(scope="module")
def expected(by_participant):
    return by_participant.results()


@pytest.fixture
def planned(project):
    """A function that says which jobs the runs of some methods would be."""
    return lambda methods: project.configure(rounds=3, methods=methods).plan()


def test_segments_give_the_same_bytes(by_participant, expected, project):
    """A round is a segment; that it may also be a job, runs that go on show below."""
    settings = {"rounds": 3, "methods": EVERYTHING, "execution": SEGMENT}
    jobs = project.configure(**settings).make().jobs
    assert jobs["local_training"] == jobs["aggregation"] == jobs["distillation"] == 0
    found, read = without_state(project.results()), without_state(expected)
    assert {path: found.get(path) for path in read} == read
    unread = [path.rpartition("/round_")[2] for path in found.keys() - read.keys()]
    assert all(re.fullmatch(UNREAD, path) for path in unread), unread
    generators = "results/training/*/round_0003/*/generator.*"
    assert project.files(generators) == by_participant.files(generators)


def test_states_moments_and_residuals_are_kept_where_a_run_may_go_on(by_participant):
    files = by_participant.files("results/training/**/state.*")
    kept = {path.parts[2].partition("-seed0-")[0].partition("-dirichlet1-")[2] for path in files}
    marks = ["fedavg-adam", "fedavg-stc", "fednova-momentum", "-moon", "-scaffold"]
    marks += ["scaffold-local_bn-yogi-K2", "fedavg-local_bn"]  # statistics of the clients' own
    assert all(any(name.endswith(mark) for name in kept) for mark in marks)
    assert not any("fedgkd" in name for name in kept)
    assert "cnn_small-fedavg" not in kept


def test_generators_are_kept_where_a_run_may_go_on(by_participant, planned):
    """With the state of clients beside them. Label counts are among the bytes that are sent."""
    run = planned(GENERATORS)
    rules = Counter(rule.partition("_with")[0] for rule in run.jobs.elements())
    assert rules["distillation"] == 2 * 3
    assert run.jobs["logits"] == 0
    # Of FedFTG's rounds the first is that of FedAvg; SCAFFOLD's are not.
    assert len(run.trained()) == 2 * (3 + 2 + 3)
    kept = by_participant.files("results/training/*/*/*/generator.*")
    assert [path.parts[-3] for path in kept] == ["round_0003"] * 2
    sent = {}
    for path in by_participant.files("results/training/*/metrics/global_model-test/*.parquet"):
        table = pq.read_table(by_participant.path / path)
        sent[path.parts[2]] = table["bytes_up"].to_pylist()
    names = ("logistic_regression-fedavg", "fedavg-designated-fedftg")
    plain, taught = (next(sent[key] for key in sent if f"-{name}-seed" in key) for name in names)
    assert [one - other for one, other in zip(taught, plain, strict=True)] == [4 * 10] * 3


def test_only_what_some_job_reads_is_kept(expected, project):
    methods = ["feddf", "fedsdd", "bayesian"]
    settings = {"methods": methods, "execution": SEGMENT, "keep": "needed", "evaluate_every": 3}
    project.configure(rounds=3, **settings).make()
    found = {
        path: content
        for path, content in without_state(project.results()).items()
        if "/round_" in path
    }
    assert found == {path: expected[path] for path in found}
    assert any("/round_0003/group_0/distilled." in path for path in found)
    rounds = {
        kind: {path.partition("/round_")[2][:4] for path in found if kind in path}
        for kind in ("/participant_", "/participants.")
    }
    # The first teacher of feddf reads its participants' updates, and who scores drawn models those
    # of the last round; evaluations read the tables.
    assert rounds == {"/participant_": {"0001", "0003"}, "/participants.": {"0003"}}
    assert "Nothing to be done" in project.plan().output
    plan = project.configure(rounds=4, **settings).plan()
    assert not any("segment_0001" in rule or "segment_0002" in rule for rule in plan.jobs)


def test_a_run_goes_on_within_a_segment(expected, project):
    """Of the files of a segment those of the first rounds are there."""
    settings = {"methods": ["fedsdd"], "keep": "needed", "evaluate_every": 1}
    settings["execution"] = SEGMENT | {"segment_rounds": 4}
    for rounds in (2, 3):
        assert project.configure(rounds=rounds, **settings).make().jobs["evaluation"] == 1
    found = {path: content for path, content in project.results().items() if "/round_" in path}
    assert any("/round_0003/group_1/logits" in path for path in found)
    assert found == {path: expected[path] for path in found}


@pytest.mark.parametrize("execution", [{}, ROUND], ids=["participant", "round"])
def test_four_hundred_rounds_are_a_graph_like_any_other(project, execution):
    """A chain of rounds is followed by recursion, which Python ends at a depth of its own."""
    plan = project.configure(rounds=400, methods=["fedsdd"], execution=execution).plan()
    assert plan.jobs["evaluation"] == 1
    if not execution:
        assert max(round_ for round_, _, _ in plan.trained()) == 400


def test_a_run_goes_on_in_another_granularity(expected, project):
    methods = ["fedavg", "fedsdd", "scaffold"]
    project.configure(rounds=1, methods=methods, execution=ROUND).make()
    for rounds, execution in (2, {}), (3, SEGMENT):
        same = project.configure(rounds=rounds - 1, methods=methods, execution=execution)
        assert "Nothing to be done" in same.plan().output
        run = project.configure(rounds=rounds, methods=methods, execution=execution).make()
        assert run.jobs["evaluation"] == 3
        begun = {rule[8:12] for rule in run.jobs if rule.startswith("segment_")}
        assert begun | {f"{round_:04d}" for round_, _, _ in run.trained()} == {f"{rounds:04d}"}
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
