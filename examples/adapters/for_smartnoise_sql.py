r"""SmartNoise SQL, https://docs.smartnoise.org/sql: private SQL on a table of pandas, one row a person.

    dpaudit attack 'pip:smartnoise-sql==1.0.10#examples/adapters/for_smartnoise_sql.py:count' \
        --claim "epsilon=1" --relation add-remove-one --domain 0,1 --rows 10
    dpaudit attack 'pip:smartnoise-sql==1.0.10#examples/adapters/for_smartnoise_sql.py:grouped' \
        --claim "epsilon=1, delta=0.01" --relation add-remove-one --domain 0,1 --rows 10

`count` is one query a draw, which the library parses and rewrites, and whose noise it calibrates, anew each time.
`grouped` is a hundred times faster: many groups hold the same rows, one query counts them all, and each group's row of
the answer, or that there is none, is a draw. A group whose noisy count is below a threshold is not released, and with
delta = 0.01 the threshold is low enough to be crossed by small groups.
"""

import pandas as pd
from snsql import Privacy, from_df

GROUPS = 200  # so many share the cost of a query, which is that of 150 groups

_drawn = {}  # by dataset: draws of the last query that nobody has asked for yet; each is given away once


def _reader(table, delta, censor):
    columns = {"k": {"type": "int"}, "x": {"type": "int", "lower": 0, "upper": 1}}
    described = {"row_privacy": True, "censor_dims": censor, "clamp_counts": False, **columns}
    metadata = {"": {"S": {"T": described}}}
    return from_df(table, privacy=Privacy(epsilon=1.0, delta=delta), metadata=metadata)


def count(data, n):
    """Count the rows; the noise is that of the default, discrete Laplace by its name."""
    table = pd.DataFrame({"k": 0, "x": pd.Series(data, dtype="int64")})
    reader = _reader(table, 1e-6, censor=False)
    return [reader.execute("SELECT COUNT(*) AS c FROM S.T")[1][0] for _ in range(n)]


def grouped(data, n):
    """Count the rows of a group, None where it is not released."""
    drawn = _drawn.setdefault(tuple(data), [])
    while len(drawn) < n:
        drawn += _groups(data)
    return [drawn.pop() for _ in range(n)]


def _groups(data):
    groups = pd.Series([group for group in range(GROUPS) for _ in data], dtype="int64")
    table = pd.DataFrame({"k": groups, "x": pd.Series(list(data) * GROUPS, dtype="int64")})
    reader = _reader(table, 0.01, censor=True)
    released = dict(map(tuple, reader.execute("SELECT k, COUNT(*) AS c FROM S.T GROUP BY k")[1:]))
    return [released.get(group) for group in range(GROUPS)]
