import importlib.util

import pytest

from fedstage.data.datasets.texts import (
    SPECIAL,
    build_vocabulary,
    split_words,
    tokens_of,
    vocabulary_of,
)
from fedstage.errors import FedstageError
from fedstage.settings.data import AgNews, Sent140

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
each = pytest.mark.parametrize("kind", [AgNews, Sent140], ids=lambda kind: kind.__name__)


def settings(kind, **changes):
    (name,) = kind.names()
    return kind(name=name, vocabulary_size=200, **changes)


@each
def test_vocabulary_is_of_the_texts_or_of_a_file(tmp_path, kind):
    pieces = build_vocabulary(["a text"], 200)
    assert vocabulary_of(settings(kind), tmp_path, ["a text"]) == pieces
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL, "oil"]) + "\n")
    of_file = vocabulary_of(settings(kind, vocabulary="vocab.txt"), tmp_path, ["a text"])
    assert of_file == [*SPECIAL, "oil"]


@each
@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        (None, r"vocab\.txt: data\.vocabulary: .*No such file"),
        (["[UNK]", "[PAD]", "[CLS]", "[SEP]"], r"must have \[PAD\] first"),
        (["[PAD]", "[UNK]", "[CLS]"], r"must have .* \[SEP\]"),
        ([*SPECIALS, *map(str, range(200))], "size = 200: the file has 204"),
    ],
    ids=["missing", "padding", "special", "large"],
)
def test_faults_of_a_vocabulary_are_named(tmp_path, kind, pieces, message):
    if pieces is not None:
        (tmp_path / "vocab.txt").write_text("\n".join(pieces))
    with pytest.raises(FedstageError, match=message):
        vocabulary_of(settings(kind, vocabulary="vocab.txt"), tmp_path, [])


def test_no_texts_have_no_tokens():
    vocabulary = {piece: number for number, piece in enumerate(SPECIAL)}
    assert tokens_of([], vocabulary, 5).shape == (0, 5)


# --- wordpiece ------------------------------------------------------------------------------------


TEXTS = ["The cat sat.", "the Cat, the dog", "A dög sat"]
LANGUAGES = [
    "我们在北京学习机器学习。中国" * 9,
    "東京で機械学習を勉強しています、とても楽しい！",
    "می\u200cخواهم یادگیری ماشین را بیاموزم؟",
    "हम मशीन लर्निंग सीख रहे हैं।",
    "good 👍🏽 day 👨\u200d👩\u200d👧 🇨🇭!",
    "Ame\u0301lie co\u00adoperate na\u0308i\u0308ve e\u0323\u0302",
    "Straße İstanbul ΣΊΣΥΦΟΣ Ångström",
    "한국어 자연어 처리 \ufeff\u2028 中\u3000文",
]
PIECES = [*SPECIAL, "un", "##aff", "##able", "##a", "##b", "want", "##ed", "a", ","]
NUMBERS = {piece: number for number, piece in enumerate(PIECES)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The cat  sat.\n", ["the", "cat", "sat", "."]),
        ("Zoë's café", ["zoe", "'", "s", "cafe"]),
        ("a$b^c #39; d\\e", ["a", "$", "b", "^", "c", "#", "39", ";", "d", "\\", "e"]),
        ("tab\tand\x00null", ["tab", "andnull"]),
        ("«quoted» — dash", ["«", "quoted", "»", "—", "dash"]),
        ("", []),
    ],
)
def test_words_are_in_lower_case_without_accents_and_apart_from_punctuation(text, words):
    assert split_words(text) == words


def encode(text, vocabulary, length):
    return tokens_of([text], vocabulary, length).tolist()[0]


@pytest.mark.parametrize(
    ("word", "pieces"),
    [
        ("unaffable", ["un", "##aff", "##able"]),
        ("wanted", ["want", "##ed"]),
        ("aab", ["a", "##a", "##b"]),
        ("unwanted", ["[UNK]"]),  # there is no ##want
        ("x", ["[UNK]"]),
        ("a" * 100, ["a", *["##a"] * 99]),
        ("a" * 101, ["[UNK]"]),
    ],
)
def test_each_piece_is_the_longest_that_fits(word, pieces):
    found = encode(word, NUMBERS, len(pieces) + 2)
    assert found == [NUMBERS[piece] for piece in ["[CLS]", *pieces, "[SEP]"]]


def test_texts_are_marked_cut_and_padded():
    cls, sep, pad = (NUMBERS[name] for name in ("[CLS]", "[SEP]", "[PAD]"))
    want, ed, a = (NUMBERS[name] for name in ("want", "##ed", "a"))
    assert encode("Wanted: a", NUMBERS, 8) == [cls, want, ed, NUMBERS["[UNK]"], a, sep, pad, pad]
    assert encode("Wanted a", NUMBERS, 4) == [cls, want, ed, sep]
    assert encode("", NUMBERS, 3) == [cls, sep, pad]


def test_vocabulary_is_special_tokens_characters_and_frequent_words():
    vocabulary = build_vocabulary(TEXTS, 100)
    assert tuple(vocabulary[:5]) == SPECIAL
    assert len(set(vocabulary)) == len(vocabulary)
    words = [piece for piece in vocabulary[5:] if len(piece.removeprefix("##")) > 1]
    assert words == ["the", "cat", "dog", "sat"]  # three times, then twice in alphabetical order
    characters = {piece for piece in vocabulary[5:] if piece not in words}
    assert characters >= {
        "t",
        "c",
        "s",
        "d",
        "a",
        ".",
        ",",
        "##h",
        "##e",
        "##a",
        "##t",
        "##o",
        "##g",
    }


@pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None,
    reason="transformers, of the extra `text`, is not installed",
)
@pytest.mark.parametrize("text", [*TEXTS, "Zoë's un-affable café, wanted!", "x" * 101, *LANGUAGES])
def test_tokens_are_those_of_bert(text):
    from transformers import BertTokenizer

    pieces = build_vocabulary([*TEXTS, "unaffable wanted", *LANGUAGES], 400)
    numbers = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = BertTokenizer(vocab=numbers, do_lower_case=True)
    expected = tokenizer(text, max_length=48, padding="max_length", truncation=True)["input_ids"]
    assert encode(text, numbers, 48) == expected


def test_different_chinese_texts_have_different_tokens():
    texts = ["中" * 120, "国" * 120, "中国" * 60]
    numbers = {piece: number for number, piece in enumerate(build_vocabulary(texts, 100))}
    tokens = [tuple(encode(text, numbers, 64)) for text in texts]
    assert len(set(tokens)) == 3
    assert all(numbers["[UNK]"] not in text for text in tokens)
