"""Kinds of causes, and those that an audit can ignore by the names that options and declarations take.

Nothing is loaded here, so that help texts can list the names.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence

from auditor.errors import SpecificationError

#: Kind of all causes that read the numbers of an output. It cannot be ignored: claims are about these above all.
VALUES = "values"
#: Kinds that can be ignored, by name, as `kind_of` gives them.
IGNORABLE: Mapping[str, str] = {
    "floating-point": "floating-point",
    "lattice": "lattice",
    "missing-values": "NaN or infinite values",
    "length": "length of the output",
    "keys": "key",
    "key-order": "order of the output's keys",
    "types": "type of the output",
    "exceptions": "exception",
    "shared-noise": "shared noise",
    "equal-elements": "equal elements: how many different values there are",
    "element-order": "order of the elements",
    "element-places": "place of a value in the output",
    "set-bits": "number of bits that are set in the output",
}
#: Beginnings of phrases that stand for the kind of all of them, see `kind_of`.
_KINDS = ("floating-point", "lattice", "NaN or infinite values", "key")
#: Beginnings of phrases for events on the numbers of an output, whatever they are made of.
_VALUES = ("value", "threshold", "set of", "interval", "coordinate", "difference", "learned", "the mechanism's own")
#: Names that are suggested for an unknown one, and how alike they are at least; arbitrary.
_SUGGESTED, _ALIKE = 3, 0.5


def read_kinds(given: str | Sequence[str]) -> tuple[str, ...]:
    """Read names of kinds, in the order of `IGNORABLE`.

    Examples
    --------
    >>> read_kinds("length, floating-point")
    ('floating-point', 'length')

    Raises
    ------
    SpecificationError
        If one is not a name of a kind that can be ignored; the message has names that are close.
    """
    if not isinstance(given, str | Sequence) or not all(isinstance(name, str) for name in given):
        raise SpecificationError(f"ignore must be names of kinds of causes, got {given!r}")
    texts = [given] if isinstance(given, str) else given
    names = [name.strip() for text in texts for name in text.split(",") if name.strip()]
    for name in names:
        if name not in IGNORABLE:
            raise SpecificationError(_explain_unknown(name))
    return tuple(name for name in IGNORABLE if name in names)


def kind_of(cause: str) -> str:
    """Kind of a cause.

    All phrases that audits of one defect may give with other draws have the same kind.

    One defect can be seen through many events, and which of them is bet on first is up to the draws: noise of too small
    a scale is a threshold on a value with one seed and a set of values with the next, in this coordinate or in that,
    and seems not to vary at all where few draws suffice. All that read the numbers of an output are therefore of one
    kind, and so are all on the bits of floats and all on noise that is used twice. What else there is, such as the
    length of an output, is a kind by itself.

    >>> kind_of("set of values of the output") == kind_of("output never varies; threshold on the value of the output")
    True
    >>> kind_of("floating-point bit structure of coordinate 3"), kind_of("length of the output")
    ('floating-point', 'length of the output')
    """
    phrase = cause.removeprefix("output never varies; ")
    if "shared noise" in phrase or "repeated noise" in phrase:
        return "shared noise"
    kind = next((start for start in _KINDS if phrase.startswith(start)), phrase)
    return VALUES if phrase.startswith(_VALUES) else kind


def find_kind(kind: str) -> str | None:
    """Name of a kind that can be ignored, else None.

    Kinds are as `kind_of` gives them.
    """
    return next((name for name, known in IGNORABLE.items() if known == kind), None)


def _explain_unknown(name: str) -> str:
    plain = re.sub(r"[\s_]+", "-", name.lower())
    if plain in (VALUES, "value", "threshold", "scale"):
        return (
            f"{name!r} cannot be ignored: causes on the numbers of an output are what a claim of privacy is about; "
            f"kinds of causes that can be: {', '.join(IGNORABLE)}"
        )
    close = [kind for kind in IGNORABLE if kind in plain or plain in kind]
    close = close or difflib.get_close_matches(plain, IGNORABLE, _SUGGESTED, _ALIKE)
    hint = f"did you mean {' or '.join(close)}? Kinds" if close else "kinds"
    return f"no kind of causes is called {name!r}; {hint} that can be ignored: {', '.join(IGNORABLE)}"
