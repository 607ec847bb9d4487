"""multi-freq-ldpy 0.2.5: does sampling one of two attributes amplify the budget, even if both change?"""

import numpy as np
from multi_freq_ldpy.mdim_freq_est.RSpFD_solution import RSpFD_GRR_Client

CASE = {
    "requires": "multi-freq-ldpy==0.2.5 scipy==1.17.1 numpy==2.3.5 numba==0.63.1 xxhash==3.6.0",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "[[0, 0], [0, 1], [1, 0], [1, 1]]",
    "rows": 1,
    "min_rows": 1,
    "pair": ([[0, 0]], [[1, 1]]),
    "level": 1.49,
    "family": "local protocols",
    "cause": (),
    "source": "",
    "draws": 20000,
}


def draw(data, n):
    """Randomise one attribute and make the other one up; the level is ln(1 + 2 (e - 1)) where both change."""
    row = np.array([int(value) for value in data[0]])
    return [list(map(int, RSpFD_GRR_Client(row, [2, 2], 2, 1.0))) for _ in range(n)]


def shows(output):
    """Both are 1."""
    return output == [1, 1]
