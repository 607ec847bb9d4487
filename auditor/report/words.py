"""Numbers and names of a report, in words: what all formats share."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

VERDICTS = ("violation", "deviation", "error", "inconclusive", "consistent", "holds")

LEVELS = {
    "L0": "exact distribution",
    "L1": "theorem",
    "L2": "component",
    "L3": "conformity",
    "L4": "accuracy",
}


def escape_controls(text: str) -> str:
    r"""Escape control characters and lone surrogates, such as ``\x1b``.

    Names and events can come from the audited target: they must not reach a terminal as commands, and XML and UTF-8
    have no form for some of them. Line breaks and tabs stay.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Cn") else _escape_character(c)
        for c in text
    )


def _escape_character(c: str) -> str:
    code = ord(c)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_NUMBERS = frozenset((float, int))
#: What Python writes before the digits of an exponent.
_POWER = re.compile(r"(?<=\d)e([+-])0*(?=[1-9])")


def clean_values(value: Any) -> Any:
    """Pass all strings and keys of parsed JSON through `escape_controls`."""
    if isinstance(value, str):
        return escape_controls(value)
    if isinstance(value, Mapping):
        return {escape_controls(str(k)): clean_values(v) for k, v in value.items()}
    if isinstance(value, list | tuple):  # most of a file are long lists of numbers
        return [v if type(v) in _NUMBERS else clean_values(v) for v in value]
    return value


def one_line(text: str) -> str:
    """Turn every run of white space into one space."""
    return " ".join(text.split())


def shorten_text(text: str, width: int) -> str:
    """Shorten text to ``width`` characters, cut in the middle.

    Both ends of an id tell claims apart.

    Parameters
    ----------
    text : str
        A text in one line.
    width : int
        Most characters; with less than 3 the text is cut at the end.
    """
    if len(text) <= width:
        return text
    if width < 3:
        return text[:width]
    head = width // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def format_level(value: float | None, missing: str = "–") -> str:
    """Format a level with 4 significant digits; a dash for None.

    Parameters
    ----------
    value : float or None
        The level; infinities are "∞" and "−∞". From a thousand to ten millions it is written out, as counts are.
    missing : str
        Text for None and NaN.
    """
    if value is None or math.isnan(value):
        return missing
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if 999.95 <= abs(value) < 1e7:
        return f"{float(f'{value:.4g}'):,.0f}"
    return shorten_powers(f"{value:.4g}")


def shorten_powers(text: str) -> str:
    """Shorten powers of ten in a text: "1e+06" to "1e6"."""
    return _POWER.sub(lambda found: "e-" if found[1] == "-" else "e", text)


def number_of(count: int, noun: str, plural: str = "") -> str:
    """Count a noun, for example "1 claim" and "58 claims".

    Parameters
    ----------
    count : int
        How many.
    noun : str
        The noun for one.
    plural : str
        The noun for another number; ``noun`` with "s" if it is empty.
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def format_percent(share: float) -> str:
    """Format a probability as a percentage.

    It has as many digits as tell it from 0 and 1.
    """
    value = 100 * share
    if 0 < value < 0.1 or 99.9 < value < 100:
        return f"{shorten_powers(f'{value:.4g}')} %"
    if value >= 999.5:  # a lower bound may be many times the claim
        return f"{format_level(float(f'{value:.3g}'))} %"
    return f"{value:.3g} %"


def format_share(part: float | None, missing: str = "–") -> str:
    """Format a part of a claim as a percentage.

    Parameters
    ----------
    part : float or None
        The part; 1 is the whole claim.
    missing : str
        Text for None.
    """
    return missing if part is None else format_percent(part)


def format_e_value(log10: float | None, missing: str = "–") -> str:
    """Format an e-value from its decimal logarithm, for example "10^3.6".

    Parameters
    ----------
    log10 : float or None
        The decimal logarithm; the e-value of infinity is "∞", that of minus infinity "0".
    missing : str
        Text for None and NaN.
    """
    if log10 is None or math.isnan(log10):
        return missing
    if math.isinf(log10):
        return "∞" if log10 > 0 else "0"
    return f"10^{log10 + 0.0:.1f}".replace("^-0.0", "^0.0")


def format_place(source: Mapping[str, Any]) -> str:
    """Format document and place of a statement, in one line."""
    parts = [str(source.get(key) or "") for key in ("document", "place")]
    return one_line(", ".join(part for part in parts if part))


def make_slugs(ids: Sequence[str]) -> list[str]:
    """Make anchors of claims, from their ids alone.

    A link stays good when other claims are added.

    Ids that give the same slug are told apart by a number, in order.
    """
    taken: set[str] = set()
    result = []
    for name in ids:
        base = "claim-" + (re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-") or "unnamed")
        slug, k = base, 1
        while slug in taken:
            k += 1
            slug = f"{base}-{k}"
        taken.add(slug)
        result.append(slug)
    return result


def flatten_value(value: Any, label: str = "") -> list[tuple[str, str]]:
    """Flatten nested data to labelled lines, for tables of two columns.

    Parameters
    ----------
    value : JSON value
        Mappings and lists of mappings are taken apart, other lists are one line.
    label : str
        Label of the whole, which begins the labels of its parts.

    Returns
    -------
    list of (str, str)
        Labels and values as text.
    """
    if isinstance(value, Mapping):
        return [line for key, v in value.items() for line in flatten_value(v, f"{label}, {key}" if label else str(key))]
    if isinstance(value, list | tuple):
        if any(isinstance(v, Mapping) for v in value):
            return [line for i, v in enumerate(value, 1) for line in flatten_value(v, f"{label} {i}")]
        return [(label, _join_texts([format_scalar(v) for v in value]))]
    return [(label, format_scalar(value))]


def format_scalar(value: Any) -> str:
    """Format one value of JSON.

    "inf" is how an infinite number is stored.
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        # A whole number is written out like a count, unless it is too long to read.
        return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e10 else shorten_powers(f"{value:.6g}")
    if isinstance(value, list | tuple):
        return "[" + _join_texts([format_scalar(v) for v in value]) + "]"
    return {"inf": "∞", "-inf": "−∞", "nan": "not a number"}.get(str(value), str(value))


def _join_texts(texts: list[str]) -> str:
    # Twelve values fill a line; longer lists are data, for which results.json is the place.
    return ", ".join(texts) if len(texts) <= 12 else f"{', '.join(texts[:10])}, … ({len(texts)} values)"


def join_texts(texts: Iterable[str]) -> str:
    """Join texts, for example "a, b and c"."""
    listed = list(texts)
    if len(listed) < 2:
        return "".join(listed)
    return f"{', '.join(listed[:-1])} and {listed[-1]}"
