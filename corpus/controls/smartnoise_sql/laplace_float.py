"""smartnoise-sql 1.0.10: Laplace noise on a sum of floating-point numbers, as the library scales it."""

from snsql.sql._mechanisms import Laplace

CASE = {
    "requires": "smartnoise-sql==1.0.10",
    "claim": "epsilon=1",
    "relation": "add-remove-one",
    "domain": "0.0,1.0",
    "rows": 4,
    "family": "floats and sampling",
}

MECHANISM = Laplace(1.0, sensitivity=1.0, max_contrib=1)


def draw(data, n):
    """Sum with noise."""
    total = float(sum(data))
    return MECHANISM.release([total] * n)


draw.states = {"noise": {"distribution": "laplace", "scale": MECHANISM.scale, "sensitivity": 1.0}, "query": "sum"}
