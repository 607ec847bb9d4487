"""pure-ldp 1.1.2: symmetric unary encoding keeps a one that another value's noise has set at the user's place."""

from pure_ldp.frequency_oracles.unary_encoding import UEClient

CASE = {
    "requires": "pure-ldp==1.1.2 scikit-learn==1.8.0 statsmodels==0.14.6 seaborn==0.13.2",
    "fixed": "pure-ldp==1.2.0 scikit-learn==1.8.0 statsmodels==0.14.6 seaborn==0.13.2",
    "claim": "epsilon=2",
    "relation": "replace-one",
    "domain": "0:3",
    "rows": 1,
    "min_rows": 1,
    "pair": ([0], [1]),
    "level": 2.404,
    "family": "local protocols",
    "cause": (),
    "source": "https://arxiv.org/abs/2309.01597",
    "draws": 100_000,
}

CLIENT = UEClient(epsilon=2.0, d=4, use_oue=False, index_mapper=lambda value: value)


def draw(data, n):
    """Encode a value of four as four noisy bits."""
    return [CLIENT.privatise(int(data[0])).tolist() for _ in range(n)]


def shows(output):
    """The first bit is set and the second is not."""
    return output[0] == 1 and output[1] == 0
