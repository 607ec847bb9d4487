"""pure-ldp 1.2.0: is RAPPOR meant to set further bits of the filter at random and to clear none?"""

from pure_ldp.frequency_oracles.rappor import RAPPORClient

CASE = {
    "requires": "pure-ldp==1.2.0 scikit-learn==1.8.0 statsmodels==0.14.6 seaborn==0.13.2",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "0,1",
    "rows": 1,
    "min_rows": 1,
    "pair": ([0], [1]),
    "level": "unbounded",
    "family": "local protocols",
    "cause": ("coordinate", "output["),
    "source": "",
}

# One public hash function into two places; the noise is what the client derives from epsilon.
HASHES = [[int]]
CLIENT = RAPPORClient(f=0.5, m=2, hash_funcs=HASHES, num_of_cohorts=1, index_mapper=lambda value: value)
CLIENT.update_params(f=CLIENT.convert_eps_to_f(1.0), hash_funcs=HASHES)


def draw(data, n):
    """Encode one of two values as a noisy Bloom filter of two bits."""
    return [CLIENT.privatise(int(data[0]))[0] for _ in range(n)]


def shows(output):
    """The bit of the first value is not set."""
    return output[0] == 0
