"""smartnoise-sql 1.0.10: counts of groups, where small groups are left out."""

import pandas as pd
from snsql import Privacy, from_df

CASE = {
    "requires": "smartnoise-sql==1.0.10",
    "claim": "epsilon=1, delta=0.01",
    "relation": "add-remove-one",
    "domain": "0,1",
    "rows": 10,
    "family": "SQL and dataframes",
}

GROUPS = 200  # one query has so many groups of the same rows; each group is a draw


def draw(data, n):
    """Count of a group's rows, None where the group is left out."""
    drawn = []
    metadata = {"": {"S": {"T": {"row_privacy": True, "k": {"type": "int"}}}}}
    table = pd.DataFrame({"k": pd.Series([k for k in range(GROUPS) for _ in data], dtype="int64")})
    reader = from_df(table, privacy=Privacy(epsilon=1.0, delta=0.01), metadata=metadata)
    while len(drawn) < n:
        counts = dict(map(tuple, reader.execute("SELECT k, COUNT(*) AS c FROM S.T GROUP BY k")[1:]))
        drawn += [counts.get(k) for k in range(GROUPS)]
    return drawn[:n]
