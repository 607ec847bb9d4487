"""Exact samplers of integer noise: geometric, two-sided geometric, discrete Gaussian.

Exact means: for the float64 parameter as the rational number that it is, the distribution of the draws is within 2^-240
of the stated one in total variation, if the generator's words are uniform. No floating-point number decides anything
that it cannot decide with certainty.

Source: 000, section 2 (geometric_mechanism); Canonne, Kamath and Steinke (2020), "The discrete Gaussian for
differential privacy", algorithm 3 (discrete Gaussian by rejection from the discrete Laplace distribution).
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mechanisms.base.mechanism import IntArray, require

#: Probabilities are known to so many bits, and binary digits with a smaller probability are left out: what is lost is
#: below 2^-256 a decision. A power of two times the word's length; 256 is arbitrary.
PRECISION = 256
#: Bits of a word: ties, which cost time, are one in 65,536, and a digit costs two random bytes.
_WORD = 16
#: Fixed point in which powers of the ratio are computed. Squaring doubles the absolute error, at most 60 times.
_FRACTION = PRECISION + 128
#: Draws made at once: the words of 16 digits fill a megabyte, which stays in the cache. Arbitrary beyond that.
_BLOCK = 1 << 15
#: Draws up to which digits are joined by a product with powers of two, which is one call; of more, byte by byte, which
#: takes a third of the time then.
_FEW = 1 << 12
_POWERS = 2.0 ** np.arange(53)
#: Decimal digits for exponentials: 2^-384 is 10^-115.6, with room for the products.
_DIGITS = 140
#: Unit roundoff of float64.
_UNIT = 2.0**-53
#: Widest and narrowest discrete Gaussian, in lattice steps: between them the error bound of `_acceptance` is below 1,
#: and every value fits into int64.
_NARROWEST, _WIDEST = 2.0**-10, 2.0**40

Words = NDArray[np.uint16]


def draw_geometric(a: float, size: int | tuple[int, ...], rng: np.random.Generator) -> IntArray:
    """Draw G >= 0 with ``P[G = k] = (1 - 1/a) a^-k``.

    Parameters
    ----------
    a : float
        Base, > 1.
    size : int or tuple of int
        Shape of the result.
    rng : numpy.random.Generator
        The only source of randomness.

    Returns
    -------
    ndarray of int64, shape `size`

    Notes
    -----
    Exact because: with r = 1/a and k = sum of b_i 2^i, ``a^-k`` is the product of ``(r^(2^i))^b_i``. So the binary
    digits of G are independent, and digit i is 1 with probability ``r^(2^i) / (1 + r^(2^i))``; the product of the
    normalisers ``1 + r^(2^i)`` is ``1 / (1 - r)``. Each digit is ``U < p`` for a uniform U, of which 16 bits are drawn
    at a time and compared with those of p, until they differ: the comparison of real numbers, decided as soon as it
    can be. The bits of p come from integer arithmetic (see `_expansions`). What is missing: bits of p beyond 256 and
    digits with p below 2^-256, together less than 2^-249 in total variation (at most 60 digits).

    Source: 000, section 2.
    """
    require(1 < a < math.inf, "a finite base a > 1", a)
    return _draw_geometric(_of_base(float(a)), _count_draws(size), rng).reshape(size)


def two_sided_geometric(a: float, size: int | tuple[int, ...], rng: np.random.Generator) -> IntArray:
    """Draw Z with ``P[Z = k] = a^-|k| (a - 1) / (a + 1)``: the difference of two draws of `draw_geometric`.

    Parameters as in `draw_geometric`. Exact because: ``sum over j of P[G = j + |k|] P[G = j]`` is
    ``(1 - 1/a)^2 a^-|k| / (1 - a^-2)``, the stated mass; twice what `draw_geometric` misses is missing.

    Source: 000, section 2 (geometric_mechanism).
    """
    require(1 < a < math.inf, "a finite base a > 1", a)
    return _two_sided(_of_base(float(a)), _count_draws(size), rng).reshape(size)


def discrete_gaussian(
    sigma: float, size: int | tuple[int, ...], rng: np.random.Generator, *, resolution: int = 53
) -> IntArray:
    """Draw Z with ``P[Z = k]`` proportional to ``exp(-k^2 / (2 sigma^2))``, k an integer.

    Parameters
    ----------
    sigma : float
        From 2^-10 to 2^40. The standard deviation of Z is slightly smaller.
    size : int or tuple of int
        Shape of the result.
    rng : numpy.random.Generator
        The only source of randomness.
    resolution : int, default 53
        Bits of the uniform number that are drawn first, 1 to 53. With few of them most decisions take the slow path;
        the distribution is the same.

    Returns
    -------
    ndarray of int64, shape `size`

    Notes
    -----
    Exact because: with t = floor(sigma) + 1, a proposal Y of mass proportional to ``exp(-|y| / t)`` that is accepted
    with probability ``exp(-(|y| - sigma^2 / t)^2 / (2 sigma^2))`` has accepted mass proportional to
    ``exp(-y^2 / (2 sigma^2))``: the exponents add up to that and a constant (Canonne, Kamath and Steinke 2020). Y is
    the difference of two geometrics of ratio ``exp(-1/t)``, whose bits come from 140-digit arithmetic. Acceptance is
    ``U < p``. The leading bits of U and p in float64, with a bound on its error, decide all but about one in 2^45; for
    the rest U is drawn to 256 bits and p computed to 140 digits from the exact rational exponent. Keeping the first
    accepted proposals is fair, because proposals are independent of one another. A proposal is accepted with
    probability at least 0.4, so what the proposals miss grows by a factor of at most 5.
    """
    require(_NARROWEST <= sigma <= _WIDEST, f"sigma from {_NARROWEST:g} to {_WIDEST:g} lattice steps", sigma)
    require(1 <= resolution <= 53, "a resolution of 1 to 53 bits", resolution)
    sigma, n = float(sigma), _count_draws(size)
    t = math.floor(sigma) + 1
    out = np.empty(n, dtype=np.int64)
    done = 0
    while done < n:
        # Between 44 % and 76 % are accepted; a batch more or less is only a question of time.
        y = _two_sided(_of_scale(t), (n - done) * 3 // 2 + 16, rng)
        kept = y[_accept_proposals(y, sigma, t, resolution, rng)][: n - done]
        out[done : done + kept.size] = kept
        done += kept.size
    return out.reshape(size)


def _count_draws(size: int | tuple[int, ...]) -> int:
    return size if isinstance(size, int) else math.prod(size if isinstance(size, tuple) else np.atleast_1d(size))


def _draw_words(n: int, rng: np.random.Generator) -> Words:
    """Draw `n` uniform words of 16 bits, the same on every machine."""
    drawn = rng.integers(0, 2**64 - 1, -(-n * _WORD // 64), dtype=np.uint64, endpoint=True)
    return drawn.astype("<u8", copy=False).view("<u2")[:n]


# ------------------------------------------------------------------------------- binary digits


@lru_cache(maxsize=256)
def _of_base(a: float) -> Words:
    """Expansions for the ratio 1/a; a float64 is a rational number, and is taken for just that."""
    numerator, denominator = a.as_integer_ratio()
    return _expansions((denominator << _FRACTION) // numerator)


@lru_cache(maxsize=256)
def _of_scale(t: int) -> Words:
    """Expansions for the ratio exp(-1/t)."""
    with decimal.localcontext(decimal.Context(prec=_DIGITS)):
        return _expansions(int((Decimal(-1) / t).exp() * (1 << _FRACTION)))


def _expansions(ratio: int) -> Words:
    """Leading 256 bits of ``p_i = r^(2^i) / (1 + r^(2^i))``, for all i with ``r^(2^i) >= 2^-256``.

    Parameters
    ----------
    ratio : int
        ``r 2^384`` rounded down, 0 < r < 1.

    Returns
    -------
    ndarray of uint16, shape (digits, 16)
        The words of each p_i, most significant first.

    Notes
    -----
    Valid because: ``floor(x^2)`` of a number that is short by e is short by at most ``2 e`` and one unit of 2^-384,
    so after 60 squarings (r is at most 1 - 2^-53) the error is below 2^-322, and p_i changes by less than that.
    """
    one = 1 << _FRACTION
    rows: list[bytes] = []
    while ratio >> (_FRACTION - PRECISION):
        p = (ratio << _FRACTION) // (one + ratio)
        rows.append((p >> (_FRACTION - PRECISION)).to_bytes(PRECISION // 8, "big"))
        ratio = ratio * ratio >> _FRACTION
    table = np.frombuffer(b"".join(rows), dtype=">u2").reshape(len(rows), PRECISION // _WORD).astype(np.uint16)
    table.setflags(write=False)
    return table


def _draw_geometric(expansions: Words, n: int, rng: np.random.Generator) -> IntArray:
    """Draw `n` numbers with independent binary digits of the given probabilities; shape (n,)."""
    digits = len(expansions)
    out = np.zeros(n, dtype=np.int64)
    lead = expansions[:, :1]
    for start in range(0, n if digits else 0, _BLOCK):
        m = min(_BLOCK, n - start)
        words = _draw_words(digits * m, rng).reshape(digits, m)
        one, tied = words < lead, words == lead
        if np.count_nonzero(tied):
            ties = np.flatnonzero(tied)
            one.ravel()[ties] = _later_words(expansions, ties // m, rng)
        out[start : start + m] = _join_digits(one)
    return out


def _join_digits(one: NDArray[np.bool_]) -> IntArray:
    """Integers of binary digits, the lowest first; `one` of shape (digits, m), result of shape (m,)."""
    digits, m = one.shape
    if m <= _FEW and digits <= len(_POWERS):
        return np.asarray(_POWERS[:digits] @ one, dtype=np.float64).astype(np.int64)  # exact: at most 53 digits
    out = np.zeros(m, dtype=np.int64)
    for place in reversed(range(0, digits, 8)):  # eight digits make a byte, from the highest to the lowest
        bits = one[place : place + 8].view(np.uint8)
        byte = bits[-1].copy()
        for bit in bits[-2::-1]:
            np.add(byte, byte, out=byte)
            np.bitwise_or(byte, bit, out=byte)
        np.left_shift(out, 8, out=out)
        np.bitwise_or(out, byte, out=out)
    return out


def _later_words(expansions: Words, digit: IntArray, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Whether U < p, given that their first words are equal; `digit` says which p, shape (ties,)."""
    less = np.zeros(digit.size, dtype=bool)
    undecided = np.arange(digit.size)
    for place in range(1, expansions.shape[1]):
        words, target = _draw_words(undecided.size, rng), expansions[digit[undecided], place]
        less[undecided] = words < target
        undecided = undecided[words == target]
        if not undecided.size:
            break
    return less


def _two_sided(expansions: Words, n: int, rng: np.random.Generator) -> IntArray:
    """Draw `n` differences of two geometrics; shape (n,)."""
    both = _draw_geometric(expansions, 2 * n, rng)
    return both[:n] - both[n:]


# ----------------------------------------------------------------------------------- rejection


def _acceptance(y: IntArray, sigma: float, t: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Probability of acceptance in float64, and a bound on its absolute error; both of the shape of `y`.

    Valid because: with v = sigma^2/t and s = |y| + v, rounding y, v and their difference moves ``|y| - v`` by at most
    4 u s (u = 2^-53), so the exponent ``(|y| - v)^2 / (2 sigma^2)`` moves by less than ``8 u (s / sigma)^2``, which is
    below 1/100 for the sigmas allowed. The exponential adds a relative error of a few u (16 are counted), and below
    2^-1000 it may underflow. Everything is doubled.
    """
    size = np.abs(y).astype(np.float64)
    v = sigma * sigma / t
    d = size - v
    p = np.exp(-d * d / (2.0 * sigma * sigma))
    s = (size + v) / sigma
    return p, p * (_UNIT * (32.0 + 16.0 * s * s)) + 2.0**-1000


def _accept_proposals(
    y: IntArray, sigma: float, t: int, resolution: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Accept each proposal with its probability: shape (n,)."""
    p, error = _acceptance(y, sigma, t)
    leading = rng.integers(0, 2**64 - 1, y.size, dtype=np.uint64, endpoint=True) >> np.uint64(64 - resolution)
    cell = 2.0**-resolution
    low = leading.astype(np.float64) * cell  # U is in [low, low + cell), both exact
    accepted = low + cell <= p - error
    for k in np.flatnonzero(~accepted & (low < p + error)):
        accepted[k] = _accept_exactly(int(y[k]), sigma, t, int(leading[k]), resolution, rng)
    return np.asarray(accepted, dtype=np.bool_)


def _accept_exactly(y: int, sigma: float, t: int, leading: int, resolution: int, rng: np.random.Generator) -> bool:
    """Whether a U of 256 bits, the first of them given, is below the probability of acceptance."""
    u = leading << (PRECISION - resolution) | int.from_bytes(rng.bytes(PRECISION // 8), "little") >> resolution
    variance = Fraction(sigma) ** 2
    exponent = (abs(y) - variance / t) ** 2 / (2 * variance)
    with decimal.localcontext(decimal.Context(prec=_DIGITS)):
        p = (-Decimal(exponent.numerator) / exponent.denominator).exp()
        return u < int(p * (1 << PRECISION))
