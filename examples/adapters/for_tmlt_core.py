r"""Tumult Core, https://docs.tmlt.dev/core: noise mechanisms and a quantile, those parts that need no Spark session.

    dpaudit attack 'pip:tmlt.core==0.20.0#examples/adapters/for_tmlt_core.py:geometric' \
        --claim "epsilon=1" --relation add-remove-one --domain 0,1 --rows 10
    dpaudit attack 'pip:tmlt.core==0.20.0#examples/adapters/for_tmlt_core.py:laplace' \
        --claim "epsilon=1" --relation add-remove-one --domain 0,1 --rows 10
    dpaudit attack 'pip:tmlt.core==0.20.0#examples/adapters/for_tmlt_core.py:discrete_gaussian' \
        --claim "rho=0.5" --relation add-remove-one --domain 0,1 --rows 10
    dpaudit attack 'pip:tmlt.core==0.20.0#examples/adapters/for_tmlt_core.py:median' \
        --claim "epsilon=1" --relation add-remove-one --domain 0.0,1.0 --rows 10

The noise is given a sum of rows 0 and 1, whose sensitivity is 1. The claims are what each measurement's privacy
function says of one row more or less.
"""

import numpy as np
import pandas as pd
from tmlt.core.domains.numpy_domains import NumpyFloatDomain
from tmlt.core.domains.pandas_domains import PandasSeriesDomain
from tmlt.core.measurements.noise_mechanisms import AddDiscreteGaussianNoise, AddGeometricNoise, AddLaplaceNoise
from tmlt.core.measurements.pandas_measurements.series import NoisyQuantile
from tmlt.core.measures import PureDP

GEOMETRIC = AddGeometricNoise(alpha=1)
LAPLACE = AddLaplaceNoise(NumpyFloatDomain(), scale=1)
GAUSSIAN = AddDiscreteGaussianNoise(sigma_squared=1)
MEDIAN = NoisyQuantile(PandasSeriesDomain(NumpyFloatDomain()), PureDP(), quantile=0.5, lower=0.0, upper=1.0, epsilon=1)


def geometric(data, n):
    """Sum with two-sided geometric noise."""
    return [GEOMETRIC(np.int64(sum(data))) for _ in range(n)]


def laplace(data, n):
    """Sum with Laplace noise: the double nearest to what exact arithmetic would give."""
    return [LAPLACE(float(sum(data))) for _ in range(n)]


def discrete_gaussian(data, n):
    """Sum with discrete Gaussian noise."""
    return [GAUSSIAN(np.int64(sum(data))) for _ in range(n)]


def median(data, n):
    """Median of rows in [0, 1], by the exponential mechanism."""
    rows = pd.Series(data, dtype="float64")
    return [MEDIAN(rows) for _ in range(n)]
