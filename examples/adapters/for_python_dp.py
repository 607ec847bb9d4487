r"""PyDP, https://github.com/OpenMined/PyDP: OpenMined's wrapper of Google's C++ library; the package is python-dp.

    dpaudit attack 'pip:python-dp==1.1.5#examples/adapters/for_python_dp.py:count' \
        --claim "epsilon=1" --relation add-remove-one --domain 0,1 --rows 10
    dpaudit attack 'pip:python-dp==1.1.5#examples/adapters/for_python_dp.py:bounded_sum' \
        --claim "epsilon=1" --relation add-remove-one --domain 0,1 --rows 10
    dpaudit attack 'pip:python-dp==1.1.5#examples/adapters/for_python_dp.py:bounded_mean' \
        --claim "epsilon=1" --relation add-remove-one --domain 0.0,1.0 --rows 10
    dpaudit attack 'pip:python-dp==1.1.5#examples/adapters/for_python_dp.py:laplace' \
        --claim "epsilon=1" --relation add-remove-one --domain 0,1 --rows 10
    dpaudit attack 'pip:python-dp==1.1.5#examples/adapters/for_python_dp.py:gaussian' \
        --claim "epsilon=1, delta=1e-5" --relation add-remove-one --domain 0,1 --rows 10

The two mechanisms are given a sum of rows 0 and 1, whose sensitivity is 1. An algorithm's `quick_result` forgets the
rows of the call before, and its budget is a new one in each call, so one object serves all draws.
"""

from pydp.algorithms.laplacian import BoundedMean, BoundedSum, Count
from pydp.algorithms.numerical_mechanisms import GaussianMechanism, LaplaceMechanism

COUNT = Count(epsilon=1.0, dtype="int")
SUM = BoundedSum(epsilon=1.0, lower_bound=0, upper_bound=1, dtype="int")
MEAN = BoundedMean(epsilon=1.0, lower_bound=0.0, upper_bound=1.0, dtype="float")
LAPLACE = LaplaceMechanism(1.0, 1.0)  # epsilon, sensitivity
GAUSSIAN = GaussianMechanism(1.0, 1e-5, 1.0)  # epsilon, delta, sensitivity


def count(data, n):
    """Count the rows."""
    return [COUNT.quick_result(data) for _ in range(n)]


def bounded_sum(data, n):
    """Sum the rows, clamped to [0, 1]."""
    return [SUM.quick_result(data) for _ in range(n)]


def bounded_mean(data, n):
    """Mean of the rows, clamped to [0, 1], whose number is private."""
    rows = [float(row) for row in data]
    return [MEAN.quick_result(rows) for _ in range(n)]


def laplace(data, n):
    """Sum with Laplace noise in double precision."""
    return [LAPLACE.add_noise(float(sum(data))) for _ in range(n)]


def gaussian(data, n):
    """Sum with Gaussian noise in double precision."""
    return [GAUSSIAN.add_noise(float(sum(data))) for _ in range(n)]


_NOISE = {"distribution": "gaussian", "scale": GAUSSIAN.std, "sensitivity": GAUSSIAN.l2_sensitivity}
gaussian.states = {"noise": _NOISE, "query": "sum"}
