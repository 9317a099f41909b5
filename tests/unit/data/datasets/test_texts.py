import pytest

from fedstage.data.datasets.texts import read_cells, tokens_of, vocabulary_of
from fedstage.data.datasets.wordpiece import SPECIAL, build_vocabulary, encode
from fedstage.errors import FedstageError
from fedstage.settings.data import AgNews, Sent140

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
each = pytest.mark.parametrize("kind", [AgNews, Sent140], ids=lambda kind: kind.__name__)


def settings(kind, **changes):
    (name,) = kind.names()
    return kind(name=name, vocabulary_size=200, **changes)


def test_rows_are_numbered_and_cut_into_cells(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('"1","two, ""2"""\n3,"4\n4"\n', encoding="utf-8")
    assert list(read_cells(path, ("a", "b"))) == [(0, ["1", 'two, "2"']), (1, ["3", "4\n4"])]


def test_a_lone_quotation_mark_is_refused_unless_it_may_stand(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('"1","a "b" c"\n', encoding="utf-8")
    with pytest.raises(FedstageError, match=r"a\.csv: .*expected"):
        list(read_cells(path, ("a", "b")))
    assert [cells[0] for _, cells in read_cells(path, ("a", "b"), strict=False)] == ["1"]


@each
def test_vocabulary_is_of_the_texts_or_of_a_file(tmp_path, kind):
    pieces = build_vocabulary(["a text"], 200)
    of_texts = vocabulary_of(settings(kind), tmp_path, ["a text"])
    assert of_texts == {piece: number for number, piece in enumerate(pieces)}
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL, "oil"]) + "\n")
    of_file = vocabulary_of(settings(kind, vocabulary="vocab.txt"), tmp_path, ["a text"])
    assert list(of_file) == [*SPECIAL, "oil"]


@each
@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        (None, r"vocab\.txt: data\.vocabulary: .*No such file"),
        (["[UNK]", "[PAD]", "[CLS]", "[SEP]"], r"begins with \[UNK\]: must have \[PAD\] first"),
        (["[PAD]", "[UNK]", "[CLS]"], r"has no \[SEP\]: must have"),
        ([*SPECIALS, *map(str, range(200))], "size = 200: the file has 204"),
    ],
    ids=["missing", "padding", "special", "large"],
)
def test_faults_of_a_vocabulary_are_named(tmp_path, kind, pieces, message):
    if pieces is not None:
        (tmp_path / "vocab.txt").write_text("\n".join(pieces))
    with pytest.raises(FedstageError, match=message):
        vocabulary_of(settings(kind, vocabulary="vocab.txt"), tmp_path, [])


def test_texts_are_cut_or_padded_to_a_length():
    vocabulary = {piece: number for number, piece in enumerate([*SPECIAL, "a", "b"])}
    tokens = tokens_of(["a b", "b a b a"], vocabulary, 5)
    assert tokens.tolist() == [encode(text, vocabulary, 5) for text in ("a b", "b a b a")]
    assert tokens[0].tolist() == [2, 5, 6, 3, 0]
    assert tokens_of([], vocabulary, 5).shape == (0, 5)
