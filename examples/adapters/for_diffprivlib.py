r"""IBM's diffprivlib, https://diffprivlib.readthedocs.io: additive mechanisms and two of its tools.

    dpaudit attack 'pip:diffprivlib==0.6.6 scikit-learn==1.8.0#examples/adapters/for_diffprivlib.py:laplace' \
        --claim "epsilon=1" --relation add-remove-one --domain 0,1 --rows 10
    dpaudit attack 'pip:diffprivlib==0.6.6 scikit-learn==1.8.0#examples/adapters/for_diffprivlib.py:gaussian_analytic' \
        --claim "epsilon=1, delta=1e-5" --relation add-remove-one --domain 0,1 --rows 10
    dpaudit attack 'pip:diffprivlib==0.6.6 scikit-learn==1.8.0#examples/adapters/for_diffprivlib.py:snapping' \
        --claim "epsilon=1" --relation add-remove-one --domain 0,1 --rows 10
    dpaudit attack 'pip:diffprivlib==0.6.6 scikit-learn==1.8.0#examples/adapters/for_diffprivlib.py:geometric' \
        --claim "epsilon=1" --relation add-remove-one --domain 0,1 --rows 10
    dpaudit attack 'pip:diffprivlib==0.6.6 scikit-learn==1.8.0#examples/adapters/for_diffprivlib.py:histogram' \
        --claim "epsilon=1" --relation add-remove-one --domain 0,1 --rows 10
    dpaudit attack 'pip:diffprivlib==0.6.6 scikit-learn==1.8.0#examples/adapters/for_diffprivlib.py:mean' \
        --claim "epsilon=1" --relation replace-one --domain 0.0,1.0 --rows 10 --min-rows 1

The mechanisms are given a sum of rows 0 and 1, whose sensitivity is 1. The library does not import with scikit-learn
1.9, and its metadata allow that version: hence the pin.
"""

from diffprivlib import mechanisms, tools

LAPLACE = mechanisms.Laplace(epsilon=1.0, sensitivity=1.0)
SNAPPING = mechanisms.Snapping(epsilon=1.0, sensitivity=1.0, lower=0.0, upper=10.0)
GAUSSIAN = mechanisms.GaussianAnalytic(epsilon=1.0, delta=1e-5, sensitivity=1.0)
GEOMETRIC = mechanisms.Geometric(epsilon=1.0, sensitivity=1)


def laplace(data, n):
    """Sum with Laplace noise in double precision."""
    return [LAPLACE.randomise(float(sum(data))) for _ in range(n)]


def gaussian_analytic(data, n):
    """Sum with Gaussian noise in double precision, scaled as Balle and Wang do."""
    return [GAUSSIAN.randomise(float(sum(data))) for _ in range(n)]


# The library's own figure: the variance of an additive mechanism is that of its noise.
_NOISE = {
    "distribution": "gaussian",
    "scale": float(GAUSSIAN.variance(0.0) ** 0.5),
    "sensitivity": GAUSSIAN.sensitivity,
}
gaussian_analytic.states = {"noise": _NOISE, "query": "sum"}


def snapping(data, n):
    """Sum, clamped to [0, 10], with Laplace noise that is rounded to a lattice of width 2 (Mironov 2012)."""
    return [SNAPPING.randomise(float(sum(data))) for _ in range(n)]


def geometric(data, n):
    """Sum with two-sided geometric noise."""
    return [GEOMETRIC.randomise(int(sum(data))) for _ in range(n)]


def histogram(data, n):
    """Numbers of rows in the two halves of [0, 1]."""
    return [tools.histogram(data, epsilon=1.0, bins=2, range=(0.0, 1.0))[0] for _ in range(n)]


def mean(data, n):
    """Mean of rows in [0, 1], whose number is public."""
    return [tools.mean(data, epsilon=1.0, bounds=(0.0, 1.0)) for _ in range(n)]
