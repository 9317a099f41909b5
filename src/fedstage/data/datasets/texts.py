"""Texts in CSV files without a header, and as tokens: numbers of WordPieces in a vocabulary."""

import csv
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from fedstage.errors import FedstageError
from fedstage.settings.data import Texts
from fedstage.storage.raw_files import place_of

# --- word pieces ----------------------------------------------------------------------------------
#
# WordPiece: words cut into the longest pieces in a vocabulary (Devlin et al. 2019).
#
# Text is split as in BERT's uncased models: in lower case, without accents, at white space and at
# each punctuation character. A piece that continues a word begins with ``##``.

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


# --- files of texts -------------------------------------------------------------------------------


def read_cells(
    path: Path, columns: Sequence[str], encoding: str = "utf-8", *, strict: bool = True
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number, from 0, and the cells of each row; `columns` are the names of the cells.

    Unless `strict`, a quotation mark within a cell may stand alone.

    Raises
    ------
    FedstageError
        If the file is missing, empty or not in the encoding, or a row has different columns.
    """
    row = -1
    try:
        with path.open(encoding=encoding, newline="") as file:
            for row, cells in enumerate(csv.reader(file, strict=strict)):
                if len(cells) != len(columns):
                    must = f"{', '.join(columns[:-1])} and {columns[-1]}"
                    raise FedstageError(f"{path}: row {row}: {len(cells)} columns: must be {must}")
                yield row, cells
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        detail = error.strerror if isinstance(error, OSError) else error
        raise FedstageError(f"{path}: {detail}") from None
    if row < 0:
        raise FedstageError(f"{path}: has no rows")


def read_lines(path: Path, where: str) -> list[str]:
    """Return the lines of a UTF-8 file; raise FedstageError, beginning with `where`, on failure."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FedstageError(f"{where}: {error}") from None


def vocabulary_of(settings: Texts, folder: Path, texts: Iterable[str]) -> Vocabulary:
    """Return the vocabulary from a file in the data folder, one piece per line, or from `texts`.

    Raises
    ------
    FedstageError
        If the file is missing, too large, or without the special tokens.
    """
    pieces = _pieces(settings, folder, texts)
    return {piece: number for number, piece in enumerate(pieces)}


def _pieces(settings: Texts, folder: Path, texts: Iterable[str]) -> list[str]:
    if settings.vocabulary is None:
        return build_vocabulary(texts, settings.vocabulary_size)
    path = place_of(settings, folder, "vocabulary")
    pieces = read_lines(path, f"{path}: data.vocabulary")
    missing = [piece for piece in SPECIAL[:4] if piece not in pieces]
    if missing or pieces[0] != SPECIAL[0]:
        fault = f"has no {missing[0]}" if missing else f"begins with {pieces[0]}"
        others = ", ".join(SPECIAL[1:4])
        raise FedstageError(
            f"{path}: data.vocabulary: {fault}: must have [PAD] first, and {others}"
        )
    if len(pieces) > settings.vocabulary_size:
        raise FedstageError(
            f"{path}: data.vocabulary_size = {settings.vocabulary_size}: the file has {len(pieces)}"
        )
    return pieces


def tokens_of(texts: Sequence[str], vocabulary: Vocabulary, length: int) -> torch.Tensor:
    """Return texts as tokens int32 [n, length], cut or padded with 0."""
    tokens = np.zeros((len(texts), length), np.int32)
    for place, text in zip(tokens, texts, strict=True):
        place[:] = encode(text, vocabulary, length)
    return torch.from_numpy(tokens)
