"""multi-freq-ldpy 0.2.5: two attributes, each with half of the budget."""

import numpy as np
from multi_freq_ldpy.mdim_freq_est.SPL_solution import SPL_GRR_Client

CASE = {
    "requires": "multi-freq-ldpy==0.2.5 scipy==1.17.1 numpy==2.3.5 numba==0.63.1 xxhash==3.6.0",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "[[0, 0], [0, 1], [1, 0], [1, 1]]",
    "rows": 1,
    "min_rows": 1,
    "family": "local protocols",
}


def draw(data, n):
    """Randomise both attributes."""
    row = np.array([int(value) for value in data[0]])
    return [list(map(int, SPL_GRR_Client(row, [2, 2], 2, 1.0))) for _ in range(n)]
