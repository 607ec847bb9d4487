"""smartnoise-sql 1.0.10: sums of public groups, where values are cut at the bounds."""

import pandas as pd
from snsql import Privacy, from_df

CASE = {
    "requires": "smartnoise-sql==1.0.10",
    "claim": "epsilon=1",
    "relation": "add-remove-one",
    "domain": "0,10,1000",
    "rows": 8,
    "min_rows": 1,
    "family": "SQL and dataframes",
}

GROUPS = 200  # one query has so many groups of the same rows; each group is a draw


def draw(data, n):
    """Sum of a group's rows; the groups are public, so that none is left out."""
    drawn = []
    columns = {"k": {"type": "int"}, "x": {"type": "int", "lower": 0, "upper": 10}}
    metadata = {"": {"S": {"T": {"row_privacy": True, "censor_dims": False, **columns}}}}
    groups = pd.Series([k for k in range(GROUPS) for _ in data], dtype="int64")
    table = pd.DataFrame({"k": groups, "x": pd.Series(list(data) * GROUPS, dtype="int64")})
    reader = from_df(table, privacy=Privacy(epsilon=1.0, delta=1e-6), metadata=metadata)
    while len(drawn) < n:
        drawn += [row[1] for row in reader.execute("SELECT k, SUM(x) AS s FROM S.T GROUP BY k")[1:]]
    return drawn[:n]
