"""smartnoise-sql 1.0.10: counts of groups, of which those below a threshold are left out."""

import pandas as pd
from snsql import Privacy, from_df

CASE = {
    "requires": "smartnoise-sql==1.0.10",
    "claim": "epsilon=1, delta=0.01",
    "relation": "add-remove-one",
    "domain": "0,1",
    "family": "SQL and dataframes",
}

GROUPS = 200
COLUMNS = {"k": {"type": "int"}, "x": {"type": "int", "lower": 0, "upper": 1}}
METADATA = {"": {"S": {"T": {"row_privacy": True, "censor_dims": True, "clamp_counts": False, **COLUMNS}}}}


def _groups(data):
    """Counts of equal groups, None for those that are left out: each is a draw, and one query makes them all."""
    keys = [group for group in range(GROUPS) for _ in data]
    table = pd.DataFrame({"k": pd.Series(keys, dtype="int64"), "x": pd.Series(list(data) * GROUPS, dtype="int64")})
    reader = from_df(table, privacy=Privacy(epsilon=1.0, delta=0.01), metadata=METADATA)
    released = dict(map(tuple, reader.execute("SELECT k, COUNT(*) AS c FROM S.T GROUP BY k")[1:]))
    return [released.get(group) for group in range(GROUPS)]


def draw(data, n):
    """Count the rows of a group."""
    rows = list(map(int, data))
    drawn = []
    while len(drawn) < n:
        drawn += _groups(rows)
    return drawn[:n]
