"""WordPiece: words cut into the longest pieces in a vocabulary (Devlin et al. 2019).

Text is split as in BERT's uncased models: in lower case, without accents, at white space and at
each punctuation character. A piece that continues a word begins with ``##``.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

#: The beginning of a vocabulary; [PAD] has number 0, which models mask.
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_LONGEST = 100  # characters of a word; a longer one is unknown

Vocabulary = Mapping[str, int]


def split_words(text: str) -> list[str]:
    """Return the words and punctuation characters of a text."""
    plain = unicodedata.normalize("NFD", text.lower())
    spaced = (_spaced(character) for character in plain if unicodedata.category(character) != "Mn")
    return "".join(spaced).split()


def _spaced(character: str) -> str:
    """Put spaces around punctuation, and replace control characters by a space."""
    category = unicodedata.category(character)
    is_ascii_sign = character.isascii() and not character.isalnum() and character.isprintable()
    if category.startswith("P") or (is_ascii_sign and character != " "):
        return f" {character} "
    return " " if category.startswith("C") else character


def build_vocabulary(texts: Iterable[str], size: int) -> list[str]:
    """Return a vocabulary of at most `size` pieces, which depends on the texts alone.

    After the special tokens come all characters, as beginnings and as continuations, so that any
    word of the texts can be written, and then words; each by frequency, then alphabetically.
    """
    words = Counter(word for text in texts for word in split_words(text))
    characters: Counter[str] = Counter()
    for word, count in words.items():
        for place, character in enumerate(word):
            characters[character if place == 0 else f"##{character}"] += count
    listed = [*SPECIAL, *_by_frequency(characters), *_by_frequency(words)]
    return list(dict.fromkeys(listed))[:size]


def _by_frequency(counts: Mapping[str, int]) -> list[str]:
    return sorted(counts, key=lambda piece: (-counts[piece], piece))


def encode(text: str, vocabulary: Vocabulary, length: int) -> list[int]:
    """Return [CLS], the pieces of a text and [SEP] as numbers, cut or padded to `length`."""
    pieces = [piece for word in split_words(text) for piece in cut_word(word, vocabulary)]
    marked = ["[CLS]", *pieces[: length - 2], "[SEP]"]
    numbers = [vocabulary[piece] for piece in marked]
    return numbers + [vocabulary["[PAD]"]] * (length - len(numbers))


def cut_word(word: str, vocabulary: Vocabulary) -> Sequence[str]:
    """Return the pieces of a word, each the longest that fits; [UNK] where there is none."""
    pieces: list[str] = []
    start = 0
    while start < len(word) <= _LONGEST:
        before = "##" if start else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if before + word[start:end] in vocabulary), None)
        if end is None:
            return ["[UNK]"]
        pieces.append(before + word[start:end])
        start = end
    return pieces if len(word) <= _LONGEST else ["[UNK]"]
