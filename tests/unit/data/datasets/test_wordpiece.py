import importlib.util

import pytest

from fedstage.data.datasets.wordpiece import (
    SPECIAL,
    build_vocabulary,
    cut_word,
    encode,
    split_words,
)

TEXTS = ["The cat sat.", "the Cat, the dog", "A dög sat"]
PIECES = [*SPECIAL, "un", "##aff", "##able", "##a", "##b", "want", "##ed", "a", ","]
NUMBERS = {piece: number for number, piece in enumerate(PIECES)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The cat  sat.\n", ["the", "cat", "sat", "."]),
        ("Zoë's café", ["zoe", "'", "s", "cafe"]),
        ("a$b^c #39; d\\e", ["a", "$", "b", "^", "c", "#", "39", ";", "d", "\\", "e"]),
        ("tab\tand\x00null", ["tab", "and", "null"]),
        ("«quoted» — dash", ["«", "quoted", "»", "—", "dash"]),
        ("", []),
    ],
)
def test_words_are_in_lower_case_without_accents_and_apart_from_punctuation(text, words):
    assert split_words(text) == words


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
    assert list(cut_word(word, NUMBERS)) == pieces


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
@pytest.mark.parametrize("text", [*TEXTS, "Zoë's un-affable café, wanted!", "x" * 101])
def test_tokens_are_those_of_bert(text):
    from transformers import BertTokenizer

    pieces = build_vocabulary([*TEXTS, "unaffable wanted"], 60)
    numbers = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = BertTokenizer(vocab=numbers, do_lower_case=True)
    expected = tokenizer(text, max_length=24, padding="max_length", truncation=True)["input_ids"]
    assert encode(text, numbers, 24) == expected
