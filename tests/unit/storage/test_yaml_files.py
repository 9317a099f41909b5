import pytest

from fedstage.errors import FedstageError
from fedstage.storage.yaml_files import load_yaml


@pytest.fixture
def written(tmp_path):
    def write(text):
        (tmp_path / "a.yaml").write_text(text)
        return tmp_path / "a.yaml"

    return write


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3: key 'a' is also in line 1, once is allowed"),
        ("a:\n  - {b: 1, b: 2}\n", "line 2: key 'b' is also in line 2"),
        ("a:\n  b: {c: 1}\n  b: {d: 1}\n", "line 3: key 'b' is also in line 2"),
    ],
)
def test_a_key_that_is_there_twice_is_refused(written, text, told):
    path = written(text)
    with pytest.raises(FedstageError) as caught:
        load_yaml(path)
    assert str(caught.value).startswith(f"{path}: {told}")


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
