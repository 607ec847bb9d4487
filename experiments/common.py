"""What the experiments share: the RAND microdata, neighbouring pairs of it, claims of mutants."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from auditor.claims import Draft, conformity, mutant
from auditor.datasets import AddRemoveOne, Pair, ReplaceOne
from auditor.privacy.guarantees import Guarantee, PureDP
from mechanisms.base.mechanism import Mutant

REPLACE, ADD_REMOVE = ReplaceOne(), AddRemoveOne()


@cache
def rand() -> pd.DataFrame:
    """RAND health insurance experiment: 20,190 person-years, with visits (mdvis), health and plan of each.

    Source: statsmodels.datasets.randhie; Deb and Trivedi (2002).
    """
    import statsmodels.datasets.randhie  # half a second, which commands that draw nothing need not pay

    data: pd.DataFrame = statsmodels.datasets.randhie.load_pandas().data
    return data


def person(**values: float) -> dict[str, float]:
    """A row of the data: the first person's, with some values changed."""
    return {**{str(k): float(v) for k, v in rand().iloc[0].items()}, **values}


def replaced(name: str, first: dict[str, float], second: dict[str, float], index: int = 0) -> Pair:
    """The data with row ``index`` replaced by one person, against the same by another."""
    return Pair(_with_row(tuple(first.items()), index), _with_row(tuple(second.items()), index), name)


@cache
def _with_row(row: tuple[tuple[str, float], ...], index: int) -> pd.DataFrame:
    # Half of the people are among several pairs. By column: mechanisms ask for one at a time.
    values = rand().to_numpy(float, copy=True)
    values[index] = pd.Series(dict(row))[list(rand().columns)]
    return pd.DataFrame(np.asfortranarray(values), columns=rand().columns)


def added(name: str, row: dict[str, float]) -> Pair:
    """The data with one more person, against the data."""
    data = rand().astype(float)
    return Pair(pd.concat([data, pd.DataFrame([row])[list(data.columns)]], ignore_index=True), data, name)


def visits(first: float, second: float, index: int = 0) -> Pair:
    """One person's number of doctor visits changes."""
    return replaced(
        f"person {index} goes from {first:g} visits to {second:g}", person(mdvis=first), person(mdvis=second), index
    )


def answers(*values: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A vector of query answers."""
    return np.array(values, dtype=float)


def broken(
    case: str,
    found: Mutant[Any],
    base: Any,
    pairs: Pair | Sequence[Pair],
    *,
    guarantee: Guarantee | None = None,
    attained: bool = True,
    **options: Any,
) -> Draft:
    """Claim of a mutant of ``base``: it still claims the level of the reference, and is expected to be refuted.

    A benign mutant is expected to be consistent. The exact level on the pairs is computed from the mutant's law; where
    it states none, the mutant's table says it, if the pairs attain that (``attained``).
    """
    built = found.build(base)
    if not hasattr(built, "law") and attained and found.true_epsilon is not None:
        options.setdefault("true_level", found.true_epsilon(base))
    return mutant(
        case,
        built,
        guarantee if guarantee is not None else PureDP(base.epsilon),
        pairs,
        expected="consistent" if found.kind == "benign" else "violation",
        note=found.note,
        **options,
    )


def deviating(case: str, found: Mutant[Any], base: Any, *data: Any, **options: Any) -> Draft:
    """Claim that a mutant of ``base`` does not sample from the law of ``base``; takes what `conformity` takes."""
    built = found.build(base)
    return conformity(built, *data, reference=base, case=case, expected="deviation", note=found.note, **options)
