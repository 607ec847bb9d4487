"""diffprivlib 0.6.6: randomised response on one of two values."""

from diffprivlib import mechanisms

CASE = {
    "requires": "diffprivlib==0.6.6 scikit-learn==1.8.0",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "0,1",
    "rows": 1,
    "min_rows": 1,
    "family": "local protocols",
}


BINARY = mechanisms.Binary(epsilon=1.0, value0="0", value1="1")


def draw(data, n):
    """Randomise a value."""
    return [int(BINARY.randomise(str(int(data[0])))) for _ in range(n)]
