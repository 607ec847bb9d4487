"""Events on outputs that are texts or hold texts: the numbers, characters and words in them."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.events.features import Feature
from auditor.events.numbers_in_text import IN_TEXT, NUMBER
from auditor.events.presence import PresenceCounts
from auditor.events.screening import best_columns, screen_coordinates
from auditor.events.structure import format_path, values_at, walk_elements
from auditor.targets.columns import columns_of
from auditor.targets.outputs import Batch, show_output
from auditor.targets.values import strip_type

Array = NDArray[np.float64]
#: Keys and positions that lead to a text; none where the output is the text.
Path = tuple[Any, ...]

_WORD = re.compile(r"[^\W\d_]+")
#: Words that say that a number is missing: that is another kind of event.
_MISSING = frozenset({"nan", "inf", "infinity", "none", "null", "na", "nat"})
#: Outputs a side that are looked at, texts of an output, and numbers, words and characters of a text from either end;
#: arbitrary, each is read one by one.
_ROWS, _TEXTS, _NUMBERS, _WORDS, _CHARACTERS = 512, 16, 16, 64, 256
#: Part of the outputs that have a number or a character at its place; arbitrary.
_MOST = 0.9
#: Part of the texts at a place that are different; of those that repeat symbols say all but the order. Arbitrary.
_DISTINCT = 0.5
#: Features of each kind that are offered, and the least score of one in standard errors: numbers are few, of hundreds
#: of characters some differ so much by chance.
_OFFERED, _LEAST_NUMBER, _LEAST_CHARACTER = 4, 1.7, 4.0
_NUMBERS_ALONE = frozenset({float, int})


def _read_texts(batch: Batch, path: Path, read: Callable[[str], float]) -> Array:
    """A number that is read off the text at a place of each output: NaN for what is no text."""
    if isinstance(batch, np.ndarray):
        return np.full(len(batch), math.nan)
    texts = [_as_text(strip_type(part), path) for part in values_at(batch, path)]
    return np.array([math.nan if text is None else read(text) for text in texts], dtype=np.float64)


@dataclass(frozen=True)
class NumberInText:
    """One of the numbers in a text: NaN where there is none.

    Parameters
    ----------
    number : int
        Which one of the text's numbers, from 0.
    path : tuple
        Keys and positions that lead to the text; none where the output is the text.
    """

    number: int
    path: Path = ()

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        return _read_texts(batch, self.path, self._read)

    def _read(self, text: str) -> float:
        found = _numbers_of(text)
        return found[self.number] if self.number < len(found) else math.nan

    @property
    def name(self) -> str:
        """In words."""
        return f"number {self.number + 1} in the text of {format_path(self.path)}"

    def below(self, cut: float) -> str:
        """In words."""
        return f"{self.name} <= {cut:.6g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"{self.name} > {cut:.6g}"


@dataclass(frozen=True)
class CharacterInText:
    """One of a text's characters, by its number in Unicode.

    NaN where there is none.

    Parameters
    ----------
    place : int
        Position, as Python counts it: from 0, or from -1 at the end.
    path : tuple
        As in `NumberInText`.
    """

    place: int
    path: Path = ()

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        return _read_texts(batch, self.path, self._read)

    def _read(self, text: str) -> float:
        return float(ord(text[self.place])) if -len(text) <= self.place < len(text) else math.nan

    @property
    def name(self) -> str:
        """In words."""
        return f"character [{self.place}] in the text of {format_path(self.path)}"

    def below(self, cut: float) -> str:
        """In words."""
        return f"{self.name} <= {chr(math.floor(cut))!r}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"{self.name} > {chr(math.floor(cut))!r}"


@dataclass(frozen=True)
class WordInText:
    """Whether a text holds a word: 1 or 0.

    Parameters
    ----------
    word : str
        Letters alone.
    path : tuple
        As in `NumberInText`.
    """

    word: str
    path: Path = ()

    def __call__(self, batch: Batch) -> Array:
        """See `Feature`."""
        return _read_texts(batch, self.path, self._read)

    def _read(self, text: str) -> float:
        return float(self.word in _words_of(text))

    def below(self, cut: float) -> str:
        """In words."""
        del cut
        return f"the text of {format_path(self.path)} does not hold the word {show_output(self.word)}"

    def above(self, cut: float) -> str:
        """In words."""
        del cut
        return f"the text of {format_path(self.path)} holds the word {show_output(self.word)}"


def _numbers_of(text: str) -> list[float]:
    return [float(found[0]) for found in itertools.islice(IN_TEXT.finditer(text), _NUMBERS)]


def _words_of(text: str) -> list[str]:
    words = dict.fromkeys(found[0] for found in itertools.islice(_WORD.finditer(text), _WORDS))
    return [word for word in words if word.lower() not in _MISSING]


def find_texts(output: Any) -> Iterator[tuple[Path, str]]:
    """Find the texts in an output, and bytes in its parts.

    Parameters
    ----------
    output : object

    Yields
    ------
    tuple of (tuple, str)
        Keys and positions that lead to a text, and the text; of bytes, which have no features of their own inside of an
        output, each is a character.
    """
    output = strip_type(output)
    if isinstance(output, list | tuple) and _NUMBERS_ALONE.issuperset(map(type, output)):
        return
    for path, part in [((), output)] if isinstance(output, str) else walk_elements(output):
        text = _as_text(strip_type(part), path)
        if text is not None:
            yield path, text


def _as_text(part: Any, path: Path) -> str | None:
    if isinstance(part, bytes) and path:
        return part.decode("latin-1")
    return part if isinstance(part, str) else None


def learn_features(x: Batch, y: Batch) -> Iterator[tuple[Feature, float]]:
    """Numbers, characters and words that differ most.

    Parameters
    ----------
    x, y : ndarray of shape (n,) or (n, d), or list
        Past draws of each side.
    """
    rows = min(len(x), len(y), _ROWS)
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray) or rows < 2:
        return
    looked = [*x[:rows], *y[:rows]]
    columns = columns_of(looked)
    if columns is not None and not any({str, bytes} & column.kinds for column in columns.columns):
        return
    texts = [list(itertools.islice(find_texts(output), _TEXTS)) for output in looked]
    if not any(texts):
        return
    yield from _find_numbers(texts, rows)
    at: defaultdict[Path, list[str | None]] = defaultdict(lambda: [None] * len(texts))
    for k, held in enumerate(texts):
        for path, text in held:
            at[path][k] = text
    varied = {path: column for path, column in at.items() if len(set(column)) > _DISTINCT * len(column)}
    for path, column in varied.items():
        yield from _find_characters(path, column, rows)
    words = [[(word, path) for path, text in held if path in varied for word in _words_of(text)] for held in texts]
    counts = PresenceCounts()
    counts.add(words[:rows], words[rows:])
    for word, score in counts.score_different(rows):
        yield WordInText(*word), score


def _find_numbers(texts: Sequence[Sequence[tuple[Path, str]]], rows: int) -> Iterator[tuple[Feature, float]]:
    """Numbers in texts that differ most, but for texts that are a number and nothing else, see `Written`.

    The first ``rows`` outputs are of the first side.
    """
    held: list[dict[tuple[int, Path], float]] = []
    for of in texts:
        read = [(path, _numbers_of(text)) for path, text in of if path or not NUMBER.fullmatch(text)]
        held.append({(k, path): number for path, numbers in read for k, number in enumerate(numbers)})
    seen = Counter(itertools.chain.from_iterable(held))
    places = [place for place, count in seen.items() if count >= _MOST * len(held)]
    if places:
        table = np.array([[numbers.get(place, math.nan) for place in places] for numbers in held])
        scores = screen_coordinates(table[:rows], table[rows:])
        for k in best_columns(scores, _OFFERED, _LEAST_NUMBER):
            yield NumberInText(*places[k]), float(scores[k])


def _find_characters(path: Path, column: Sequence[str | None], rows: int) -> Iterator[tuple[Feature, float]]:
    """Characters of the texts at a place that differ most, counted from the beginning or from the end."""
    tables, places = [], []
    for step in (1, -1):
        texts = [(text or "")[::step][:_CHARACTERS] for text in column]
        width = max(map(len, texts))
        codes = np.array(texts, dtype=f"U{max(width, 1)}").view(np.uint32).reshape(len(texts), -1).astype(np.float64)
        codes[np.arange(codes.shape[1]) >= np.array([len(text) for text in texts])[:, None]] = math.nan
        tables.append(codes)
        places += [k if step == 1 else -1 - k for k in range(codes.shape[1])]
    table = np.concatenate(tables, axis=1)
    often = (~np.isnan(table)).mean(axis=0) >= _MOST
    scores = np.where(often, screen_coordinates(table[:rows], table[rows:]), 0.0)
    for k in best_columns(scores, _OFFERED, _LEAST_CHARACTER):
        yield CharacterInText(places[k], path), float(scores[k])


CAUSES = {
    NumberInText: ("threshold on the value of a number in a text", 2),
    CharacterInText: ("value of the output: a character of a text", 3),
    WordInText: ("value of the output: a word that a text holds or not", 2),
}
#: Symbols that tell as much are simpler; a character is one of hundreds.
PENALTIES = {NumberInText: 0.0, CharacterInText: 3.0, WordInText: 1.5}
