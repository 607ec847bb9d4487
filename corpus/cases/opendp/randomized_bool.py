"""opendp 0.4.0: randomised response on a bit keeps it with a probability higher than the one asked for."""

import functools

from opendp.meas import make_randomized_response_bool
from opendp.mod import enable_features

CASE = {
    "requires": "opendp==0.4.0",
    "fixed": "opendp==0.5.0",
    "claim": "epsilon=1.0987",
    "relation": "replace-one",
    "domain": "0,1",
    "rows": 1,
    "min_rows": 1,
    "pair": ([0], [1]),
    "level": 2.564,
    "family": "local protocols",
    "cause": (),
    "source": "https://github.com/opendp/opendp/pull/481",
}


@functools.cache
def _respond():
    enable_features("contrib")
    return make_randomized_response_bool(prob=0.75)


def draw(data, n):
    """Randomise a bit, kept with probability 3/4 by its manual: epsilon is ln 3."""
    respond, bit = _respond(), bool(data[0])
    return [int(respond(bit)) for _ in range(n)]


def shows(output):
    """It is 0: of probability 13/16 on 0, and 1/16 on 1."""
    return output == 0
