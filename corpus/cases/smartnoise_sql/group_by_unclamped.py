"""smartnoise-sql 1.0.10: is a sum meant to stay unclamped in a query that also groups by its column?"""

import pandas as pd
from snsql import Privacy, from_df

CASE = {
    "requires": "smartnoise-sql==1.0.10",
    "fixed": "smartnoise-sql==1.0.10",
    "claim": "epsilon=2, delta=0.02",
    "relation": "add-remove-one",
    "domain": "1,1000",
    "rows": 12,
    "pair": (
        [1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000],
        [1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000],
    ),
    "level": "unbounded",
    "family": "SQL and dataframes",
    "cause": ("scale", "sensitivity"),
    "source": "",
    "draws": 2000,
}

GROUPS = 200  # one query has so many groups of the same rows; each group is a draw


def _draw(query, data, n):
    drawn = []
    columns = {"k": {"type": "int"}, "x": {"type": "int", "lower": 0, "upper": 10}}
    metadata = {"": {"S": {"T": {"row_privacy": True, **columns}}}}
    groups = pd.Series([k for k in range(GROUPS) for _ in data], dtype="int64")
    table = pd.DataFrame({"k": groups, "x": pd.Series(list(data) * GROUPS, dtype="int64")})
    reader = from_df(table, privacy=Privacy(epsilon=1.0, delta=0.01), metadata=metadata)
    while len(drawn) < n:
        sums = {k: [] for k in range(GROUPS)}
        for row in reader.execute(query)[1:]:
            sums[row[0]].append(list(row[1:]))
        drawn += [sorted(rows) for rows in sums.values()]
    return drawn[:n]


def draw(data, n):
    """Values and their sums; all values are to be cut at 10 first. The key count and the sum cost epsilon = 1 each."""
    return _draw("SELECT k, x, SUM(x) AS s FROM S.T GROUP BY k, x", data, n)


def draw_fixed(data, n):
    """Sum without the value beside it."""
    return _draw("SELECT k, SUM(x) AS s FROM S.T GROUP BY k", data, n)


def shows(output):
    """A sum is that of twelve rows, not of eleven."""
    return any(row[-1] > 11500 for row in output)
