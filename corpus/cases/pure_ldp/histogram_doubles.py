"""pure-ldp 1.2.0: histogram encoding adds Laplace noise in doubles, whose last bits tell the value."""

from pure_ldp.frequency_oracles.histogram_encoding import HEClient

CASE = {
    "requires": "pure-ldp==1.2.0 scikit-learn==1.8.0 statsmodels==0.14.6 seaborn==0.13.2",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "0:3",
    "rows": 1,
    "min_rows": 1,
    "pair": ([0], [1]),
    "level": "unbounded",
    "family": "local protocols",
    "cause": ("floating-point",),
    "source": "https://arxiv.org/abs/2207.13793",
}

CLIENT = HEClient(epsilon=1.0, d=4, index_mapper=lambda value: value)


def draw(data, n):
    """Encode a value of four as four noisy numbers."""
    return [CLIENT.privatise(int(data[0])).tolist() for _ in range(n)]


def shows(output):
    """A first number below 1/2 that is no multiple of 2^-53: 1 plus a double of at least 1/2 in size cannot give it."""
    return 0.0 < output[0] < 0.5 and output[0] * 2.0**53 % 1.0 != 0.0
