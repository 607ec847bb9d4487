"""Phase diagrams of tracing: who is accused, by the number of users and the length of the code."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from auditor.audits.accuracy import Line, PhaseDiagram, Setting
from auditor.audits.adversaries.fingerprints import BonehShaw, Tardos, sufficient_block
from auditor.claims import Draft, phases
from mechanisms.base.mechanism import FloatArray, IntArray
from mechanisms.lower_bounds.pirates import PiracyGame, PirateScores, ProportionalPirate

#: Users, and columns: from fewer than can be traced to more than are needed.
_USERS = (4.0, 6.0, 8.0, 12.0, 16.0)
_COLUMNS = (64.0, 256.0, 1_024.0, 4_096.0, 16_384.0, 65_536.0)
_CELLS = len(_USERS) * len(_COLUMNS)
#: Probability of tracing somebody outside of the coalition, or nobody; success is promised of all but so many.
_XI = 0.1


def _coalition(users: float) -> IntArray:
    """All users but the second: among the first whom the tracer of the block code looks at."""
    return np.delete(np.arange(1, int(users) + 1), 1)


def _blocks(users: float, columns: float) -> Setting:
    code, members = BonehShaw(int(users), max(1, round(columns / (users + 1)))), _coalition(users)

    def missed(traced: IntArray) -> FloatArray:
        return np.asarray(~np.isin(traced, members), dtype=np.float64)

    return Setting(PiracyGame(code, ProportionalPirate()), members, missed, at_most=0.0)


def _block_length(users: float) -> float:
    """Columns that Claim 5.2.1 needs, with the derived constant: (n + 1) ceil(2 n^2 ln(n / xi))."""
    return (users + 1) * sufficient_block(int(users), _XI)


def _biases(users: float, columns: float) -> Setting:
    code = Tardos(int(users), int(users) - 1, _XI / users, columns=int(columns))
    members = _coalition(users)
    innocent = 1

    def missed(scores: FloatArray) -> FloatArray:
        """An innocent user is accused, or no pirate; scores are over the threshold."""
        accused = np.asarray(scores) > 1
        guilty = np.delete(accused, innocent, axis=1).any(axis=1)
        return (accused[:, innocent] | ~guilty).astype(np.float64)

    return Setting(PirateScores(code, ProportionalPirate()), members, missed, at_most=0.0)


def _bias_length(users: float) -> float:
    """Columns of Tardos's code: 100 c^2 ceil(ln(n / xi)) for c = n - 1 pirates."""
    return float(Tardos(int(users), int(users) - 1, _XI / users).length)


def _line_through(length: float, users: float, power: float) -> Line:
    """``d = constant n^power`` through a point."""
    constant = length / users**power
    return Line(f"d ~ n^{power:g}", lambda n: constant * n**power)


def diagrams() -> Iterator[Draft]:
    """Both codes against a coalition of all users but one, whose word has the share of ones of its columns."""
    for case, build, length, power in (
        ("boneh_shaw_by_users_and_length", _blocks, _block_length, 3.0),
        ("tardos_by_users_and_length", _biases, _bias_length, 2.0),
    ):
        # A pirate is missed with probability up to xi^(c/4) beside the innocent's xi: two ninths of the promise.
        promise = 1 - _XI if power == 3.0 else 1 - _XI - (_XI / 4) ** (3 / 4)
        diagram = PhaseDiagram(
            across="users n",
            up="columns d",
            xs=_USERS,
            ys=_COLUMNS,
            promised=lambda n, d, length=length, promise=promise: promise if d >= length(n) else None,  # type: ignore[misc]
            excluded=lambda n, d: None,  # noqa: ARG005 - how short a code may be is not stated
            lines=(
                Line("the code's length", length),
                _line_through(length(_USERS[0]), _USERS[0], 2.0),
                _line_through(length(_USERS[0]), _USERS[0], 3.0),
            ),
            success="tracing of a pirate, and of nobody else",
        )
        yield phases(
            build,
            diagram,
            case=case,
            controls={"one column a user": lambda n, d, build=build: build(n, n + 1)},  # noqa: ARG005
            draws={"smoke": 20 * _CELLS, "standard": 60 * _CELLS, "full": 1_000 * _CELLS},
            derived=True,
            parameters={"error": _XI, "code": f"d ~ n^{power:g}"},
        )
