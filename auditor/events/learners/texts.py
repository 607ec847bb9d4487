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
from auditor.events.numbers_in_text import NUMBER
from auditor.events.presence import PresenceCounts
from auditor.events.screening import best_columns, compare_counts, screen_coordinates
from auditor.events.structure import format_path, values_at, walk_elements
from auditor.targets.columns import columns_of
from auditor.targets.outputs import Batch, show_output
from auditor.targets.values import strip_type

Array = NDArray[np.float64]
#: Keys and positions that lead to a text; none where the output is the text.
Path = tuple[Any, ...]

_IN_TEXT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_WORD = re.compile(r"[^\W\d_]+")
#: Words that say that a number is missing: that is another kind of event.
_MISSING = frozenset({"nan", "inf", "infinity", "none", "null", "na", "nat"})
#: Outputs a side that are looked at, texts of an output, and numbers, words and characters of a text from either end;
#: arbitrary, each is read one by one.
_ROWS, _TEXTS, _NUMBERS, _WORDS, _CHARACTERS = 512, 16, 16, 64, 32
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
    texts = map(strip_type, values_at(batch, path))
    return np.array([read(text) if isinstance(text, str) else math.nan for text in texts], dtype=np.float64)


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
    return [float(found[0]) for found in itertools.islice(_IN_TEXT.finditer(text), _NUMBERS)]


def _words_of(text: str) -> list[str]:
    words = dict.fromkeys(found[0] for found in itertools.islice(_WORD.finditer(text), _WORDS))
    return [word for word in words if word.lower() not in _MISSING]


def find_texts(output: Any) -> Iterator[tuple[Path, str]]:
    """Find the texts in an output.

    Parameters
    ----------
    output : object

    Yields
    ------
    tuple of (tuple, str)
        Keys and positions that lead to a text, and the text.
    """
    output = strip_type(output)
    if isinstance(output, list | tuple) and _NUMBERS_ALONE.issuperset(map(type, output)):
        return
    for path, part in [((), output)] if isinstance(output, str) else walk_elements(output):
        text = strip_type(part)
        if isinstance(text, str):
            yield path, text


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
    if columns is not None and not any(str in column.kinds for column in columns.columns):
        return
    texts = [list(itertools.islice(find_texts(output), _TEXTS)) for output in looked]
    if not any(texts):
        return
    yield from _find_differing_places(texts, rows, _numbers_at, NumberInText, _LEAST_NUMBER)
    at: defaultdict[Path, list[str]] = defaultdict(list)
    for path, text in itertools.chain.from_iterable(texts):
        at[path].append(text)
    varied = {path for path, held in at.items() if len(set(held)) > _DISTINCT * len(held)}
    texts = [[(path, text) for path, text in held if path in varied] for held in texts]
    yield from _find_differing_places(texts, rows, _characters_at, CharacterInText, _LEAST_CHARACTER)
    counts = PresenceCounts()
    words = [[(word, path) for path, text in held for word in _words_of(text)] for held in texts]
    counts.add(words[:rows], words[rows:])
    for word in counts.different(rows):
        score = compare_counts(np.array([float(counts.x[word])]), np.array([float(counts.y[word])]), rows)
        yield WordInText(*word), float(score[0])


def _find_differing_places(
    texts: Sequence[Sequence[tuple[Path, str]]],
    rows: int,
    read: Callable[[Path, str], dict[int, float]],
    feature: Callable[[int, Path], Feature],
    least: float,
) -> Iterator[tuple[Feature, float]]:
    """Features of the places in texts whose values differ most; the first ``rows`` outputs are of the first side."""
    held = [{(place, path): v for path, text in of for place, v in read(path, text).items()} for of in texts]
    seen = Counter(itertools.chain.from_iterable(held))
    places = [place for place, count in seen.items() if count >= _MOST * len(held)]
    if not places:
        return
    table = np.array([[values.get(place, math.nan) for place in places] for values in held])
    scores = screen_coordinates(table[:rows], table[rows:])
    for k in best_columns(scores, _OFFERED, least):
        yield feature(*places[k]), float(scores[k])


def _numbers_at(path: Path, text: str) -> dict[int, float]:
    """Numbers in a text; none of a text that is a number, see `Written`."""
    return {} if not path and NUMBER.fullmatch(text) else dict(enumerate(_numbers_of(text)))


def _characters_at(path: Path, text: str) -> dict[int, float]:
    """Characters at the beginning and at the end of a text."""
    del path
    end = text[-_CHARACTERS:]
    found = {place: float(ord(character)) for place, character in enumerate(text[:_CHARACTERS])}
    return found | {place - len(end): float(ord(character)) for place, character in enumerate(end)}


CAUSES = {
    NumberInText: ("threshold on the value of a number in a text", 2),
    CharacterInText: ("value of the output: a character of a text", 3),
    WordInText: ("value of the output: a word that a text holds or not", 2),
}
#: Symbols that tell as much are simpler; a character is one of hundreds.
PENALTIES = {NumberInText: 0.0, CharacterInText: 3.0, WordInText: 1.5}
