"""Texts as tokens, the numbers of WordPieces in a vocabulary; in tables or without a header."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import BertProcessing

from fedstage.data.datasets.columns import labelled_rows, text_column
from fedstage.data.datasets.images import Dataset
from fedstage.data.datasets.splits import Labelled, Rows
from fedstage.data.excerpts import quoted
from fedstage.data.layouts import find_files
from fedstage.data.table_files import read_files
from fedstage.errors import FedstageError, both
from fedstage.settings.data import HubTexts, TextData, Texts
from fedstage.storage.raw_files import place_of


def load(settings: TextData, folder: Path) -> Dataset:
    """Read the texts below the data folder as tokens int32 [n, length], padded with 0.

    Classes and clients are numbered in the order of their names. Without a vocabulary file the
    vocabulary is built from the training texts.

    Raises
    ------
    FedstageError
        If a file is missing, damaged or lacks a column, a value is missing or of another type, or
        there are fewer texts than a size.
    """
    found = find_files(settings, folder)
    found.tell(folder / settings.folder)
    names = (settings.text, settings.label, settings.client_column, settings.group_column)
    every = read_files([*found.train, *found.test], {*filter(None, names)})
    rows, texts = both(
        lambda: labelled_rows(settings, len(found.train), every),
        lambda: text_column("data.text", settings.text, every),
    )
    return as_tokens(settings, folder, rows, texts)


def as_tokens(
    settings: TextData | HubTexts, folder: Path | None, rows: Labelled, in_files: Sequence[str]
) -> Dataset:
    """Return the texts of all files as a data set of tokens."""
    split = rows.split(settings)
    texts = [in_files[row] for row in rows.order.tolist()]
    return rows.dataset(split, token_reader(settings, folder, texts, split.train))


# --- word pieces ----------------------------------------------------------------------------------
#
# As in BERT's uncased models (Devlin et al. 2019): in lower case, without accents, cut at white
# space, punctuation and Chinese characters, and then into the longest pieces in a vocabulary. A
# piece that continues a word begins with ``##``.

#: The beginning of a vocabulary; [PAD] has number 0, which models mask.
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
#: Letters of a word, such as a Thai sentence or a read of DNA, with a vocabulary of the texts' own:
#: pieces are searched in quadratic time, 3 ms for so many.
_LONGEST = 300
_MUCH = 0.2  # of the pieces
_PLAIN, _WORDS = BertNormalizer(lowercase=True), BertPreTokenizer()

_LOGGER = logging.getLogger(__name__)

Vocabulary = Mapping[str, int]


def split_words(text: str) -> list[str]:
    """Return the words and punctuation characters of a text."""
    return [word for word, _ in _WORDS.pre_tokenize_str(_PLAIN.normalize_str(text))]


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


def tokens_of(
    texts: Sequence[str], vocabulary: Vocabulary, length: int, longest: int = 100
) -> torch.Tensor:
    """Return texts as tokens int32 [n, length]: [CLS], pieces and [SEP], cut or padded with 0.

    A word of more than `longest` letters is one unknown piece; BERT's limit is 100.
    """
    pieces = WordPiece(dict(vocabulary), unk_token="[UNK]", max_input_chars_per_word=longest)
    tokenizer = Tokenizer(pieces)
    tokenizer.normalizer, tokenizer.pre_tokenizer = _PLAIN, _WORDS
    sep, cls = ((mark, vocabulary[mark]) for mark in ("[SEP]", "[CLS]"))
    tokenizer.post_processor = BertProcessing(sep, cls)
    tokenizer.enable_truncation(length)
    tokenizer.enable_padding(length=length, pad_id=vocabulary["[PAD]"])
    tokens, longer = np.zeros((len(texts), length), np.int32), 0
    for place, text in zip(tokens, texts, strict=True):
        encoded = tokenizer.encode(text)  # encode_batch would use all cores
        place[:], longer = encoded.ids, longer + bool(encoded.overflowing)
    if longer:
        _LOGGER.warning("%d of %d texts have more than data.length = %d pieces, and are cut",
                        longer, len(texts), length)  # fmt: skip
    return torch.from_numpy(tokens)


# --- files of texts -------------------------------------------------------------------------------


def read_lines(path: Path, where: str) -> list[str]:
    """Return the lines of a UTF-8 file; raise FedstageError, beginning with `where`, on failure."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")  # splitlines cuts at U+2028, too
    except (OSError, UnicodeDecodeError) as error:
        raise FedstageError(f"{where}: {error}") from None
    return lines if lines[-1] else lines[:-1]


def token_reader(
    settings: Texts, folder: Path | None, texts: Sequence[str], train: Rows
) -> Callable[[Rows], torch.Tensor]:
    """Return a function of rows that gives the tokens of these texts.

    Their vocabulary is as in `vocabulary_of`, of the rows `train`.
    """
    pieces = vocabulary_of(settings, folder, (texts[row] for row in train.tolist()))
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    longest = 100 if settings.vocabulary else _LONGEST

    def read(own: Rows) -> torch.Tensor:
        chosen = [texts[row] for row in own.tolist()]
        tokens = tokens_of(chosen, vocabulary, settings.length, longest)
        unknown, known = (tokens == vocabulary["[UNK]"]).sum(1), (tokens != 0).sum(1) - 2
        share = int(unknown.sum()) / max(1, int(known.sum()))
        unread = [chosen[row] for row in (2 * unknown >= known).nonzero().flatten().tolist()]
        if share >= _MUCH or unread:
            _LOGGER.warning("%.1f %% of the pieces of %d texts are unknown, [UNK], and half of %d "
                            "texts: %s", 100 * share, len(own), len(unread),
                            quoted([*unread, *chosen][0]))  # fmt: skip
        return tokens

    return read


def vocabulary_of(settings: Texts, folder: Path | None, texts: Iterable[str]) -> list[str]:
    """Return the pieces in a file in the data folder, one per line, or a vocabulary of `texts`.

    Raises
    ------
    FedstageError
        If the file is missing, too large, or without the special tokens.
    """
    if settings.vocabulary is None:
        return build_vocabulary(texts, settings.vocabulary_size)
    if folder is None:
        raise FedstageError("data.vocabulary: set data_folder in config.yaml or FEDSTAGE_DATA")
    path = place_of(settings, folder, "vocabulary")
    pieces = read_lines(path, f"{path}: data.vocabulary")
    if pieces[:1] != [*SPECIAL[:1]] or not {*SPECIAL[:4]} <= {*pieces}:
        must = f"must have {SPECIAL[0]} first, and {', '.join(SPECIAL[1:4])}"
        raise FedstageError(f"{path}: data.vocabulary: {must}")
    if len(pieces) > settings.vocabulary_size:
        fault = f"data.vocabulary_size = {settings.vocabulary_size}: the file has {len(pieces)}"
        raise FedstageError(f"{path}: {fault}")
    return pieces
