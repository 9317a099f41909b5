import pytest

from fedstage.errors import FedstageError
from fedstage.storage.yaml_files import load_yaml


@pytest.fixture
def written(tmp_path):
    def write(text):
        (tmp_path / "a.yaml").write_text(text)
        return tmp_path / "a.yaml"

    return write


def test_keys_of_an_anchor_may_be_overridden(written):
    text = "a: &a {x: 1, y: 2}\nb: &b {<<: *a, x: 3}\nc: {<<: [*a, *b], y: 4}\nd: *b\n"
    assert load_yaml(written(text)) == {
        "a": {"x": 1, "y": 2},
        "b": {"x": 3, "y": 2},
        "c": {"x": 1, "y": 4},
        "d": {"x": 3, "y": 2},
    }


def test_keys_of_other_types_are_other_keys(written):
    assert load_yaml(written("1: a\n'1': b\n")) == {1: "a", "1": "b"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3: duplicate key 'a' (first used in line 1)"),
        ("a:\n  - {b: 1, b: 2}\n", "line 2: duplicate key 'b' (first used in line 2)"),
        ("a:\n  b: {c: 1}\n  b: {d: 1}\n", "line 3: duplicate key 'b' (first used in line 2)"),
        ("rounds: 1:30\n", "line 1: 1:30: YAML 1.1 and 1.2 read different numbers"),
        ("a: 1\nrounds: 010\n", "line 2: 010: YAML 1.1 and 1.2 read different numbers"),
        ("time: 1:30.5\n", "line 1: 1:30.5: YAML 1.1 and 1.2 read different numbers"),
        ('folder: "a\\0b"\n', "line 1: 'a\\x00b': has a NUL character"),
        ("seed: " + 5000 * "9" + "\n", "not valid YAML: Exceeds the limit"),
        ("day: 2026-13-01\n", "not valid YAML: month must be in 1..12"),
    ],
)
def test_what_surprises_is_refused_at_once(written, text, told):
    path = written(text)
    with pytest.raises(FedstageError) as caught:
        load_yaml(path)
    assert str(caught.value).startswith(f"{path}: {told}")
    assert "\n" not in str(caught.value)


def test_numbers_of_yaml_1_2_and_quoted_texts_are_read(written):
    text = "a: 0\nb: 0.5\nc: '010'\nd: '1:30'\ne: 1e-3\nf: -12\ng: 0x10\nh: 12:60 o'clock\n"
    assert list(load_yaml(written(text)).values()) == [
        0, 0.5, "010", "1:30", "1e-3", -12, 16, "12:60 o'clock",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line"), [("a: b: c\n", 1), ("a:\n  b: 1\n c: 2\n", 3), ("a: [1, 2\nb: 3\n", 2)]
)
def test_a_fault_of_syntax_names_the_line(written, text, line):
    path = written(text)
    with pytest.raises(FedstageError) as caught:
        load_yaml(path)
    assert str(caught.value).startswith(f"{path}: line {line}: not valid YAML: ")
    assert "\n" not in str(caught.value)
