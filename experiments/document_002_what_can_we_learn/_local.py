"""What the entries on local protocols share: how many users their answers take, and the erratum E9."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from auditor.audits.accuracy import Largest, Setting, Smallest
from auditor.claims import Draft, Erratum, accuracy, as_corrected, as_printed, scaling
from mechanisms.local_model.fresh_users import FreshUsers, corrected_users, noise_constant, printed_users
from mechanisms.statistical_queries.sq_oracles import OracleAnswers

EPSILON, BETA = 1.0, 0.05

E9 = Erratum(
    "E9",
    "false",
    "Lemma 5.6 (and with it Theorem 5.7) says that for a sufficiently large constant c a sample "
    "of n >= c log(1/beta) b^2 / (epsilon^2 tau^2) entries is enough, for every epsilon.",
    fails="n falls below what the sample itself needs: with the c that is enough up to epsilon = 1 the answer misses "
    "tau = 0.05 with probability 0.106 at epsilon = 10 and 0.405 at 20, where beta = 0.05; and so for every c at an "
    "epsilon that is large enough",
    correction="n >= c log(1/beta) (b^2 / tau^2) max{1, 1/epsilon^2}; for epsilon = O(1) that is the printed bound",
)


def setting(
    users: int, epsilon: float, tolerance: float, *, bound: float = 1.0, queries: int = 1, share: float = 1.0
) -> Setting:
    """Answers to queries of expectation 0, whose two values are -b and b; users send at ``epsilon / share``."""
    truth = np.zeros(queries)
    oracle = FreshUsers(epsilon / share, users, -bound, bound)
    return Setting(OracleAnswers(oracle, tolerance), truth, Largest(truth), tolerance)


def misses(epsilon: float, users: int, tolerance: float, queries: int = 1) -> float:
    """Exact probability that one of several answers of expectation 0 misses, with users of its own for each."""
    return -math.expm1(queries * math.log1p(-FreshUsers(epsilon, users).miss(0.0, tolerance)))


def within(
    case: str, epsilon: float, tolerance: float, users: int, *, queries: int = 1, expected: str = "consistent"
) -> Draft:
    """All answers to queries of expectation 0 are within the tolerance, with so many users for each."""
    asked = setting(users, epsilon, tolerance, queries=queries)
    return accuracy(
        asked.mechanism,
        asked.data,
        asked.error,
        at_most=tolerance,
        beta=BETA,
        exact=misses(epsilon, users, tolerance, queries),
        case=case,
        expected=expected,
        derived=True,
        parameters={"epsilon": epsilon, "tau": tolerance, "b": 1, "users": users * queries},
    )


def large_epsilon(tolerance: float, queries: int) -> Iterator[Draft]:
    """E9: the sample size as printed and as corrected, with the constant that is enough up to epsilon = 1.

    The constant is that of `noise_constant` at epsilon = 1. The corrected size with it is at least that of
    `users_needed` at every epsilon: below 1 the factor ``1 + epsilon tau / (8 b)`` is smaller, and above 1 the needed
    size falls while the corrected one stays. A hundred times the constant fails as well, at 200.
    """
    beta = BETA / queries
    constant = noise_constant(EPSILON, tolerance, beta)
    for epsilon in (0.25, 10.0, 20.0):
        users = corrected_users(constant, epsilon, tolerance, beta)
        case = f"corrected_size_epsilon_{epsilon:g}".replace(".", "_")
        yield as_corrected("E9", within(case, epsilon, tolerance, users, queries=queries))
    for times, epsilon in ((1, 10.0), (1, 20.0), (100, 200.0)):
        users = printed_users(times * constant, epsilon, tolerance, beta)
        case = f"printed_size_epsilon_{epsilon:g}"
        yield as_printed("E9", within(case, epsilon, tolerance, users, queries=queries, expected="deviation"))


def exponent_of(
    case: str,
    parameter: str,
    at: tuple[float, ...],
    exponent: float,
    others: tuple[float, ...],
    build: Callable[[float], Callable[[int], Setting]],
    bound: Callable[[float], float],
    **options: Any,
) -> Draft:
    """The smallest sample that works, sought between a thirtieth of the bound and the bound."""
    bounds = [bound(x) for x in at]
    return scaling(
        build,
        parameter=parameter,
        at=at,
        exponent=exponent,
        others=others,
        measure=Smallest(BETA, low=max(1.0, min(bounds) / 30), high=max(bounds)),
        curve=bound,
        case=case,
        draws=options.pop("draws", {"smoke": 80_000, "standard": 400_000}),
        derived=True,
        **options,
    )
