"""pure-ldp 1.2.0: is the Hadamard mechanism meant to return a list if unperturbed, and an iterator otherwise?"""

from pure_ldp.frequency_oracles.hadamard_mechanism import HadamardMechClient

CASE = {
    "requires": "pure-ldp==1.2.0 scikit-learn==1.8.0 statsmodels==0.14.6 seaborn==0.13.2",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "0:3",
    "rows": 1,
    "min_rows": 1,
    "pair": ([1], [3]),
    "level": "unbounded",
    "family": "local protocols",
    "cause": ("output[", "coordinate", "value", "set of"),
    "source": "",
    "draws": 20000,
}


CLIENT = HadamardMechClient(1.0, 4, 1, index_mapper=lambda value: value)


def draw(data, n):
    """What is returned, with its type: pairs of an index and the sign of the coefficient of the Hadamard transform."""
    made = [CLIENT.privatise(int(data[0])) for _ in range(n)]
    return [[type(pairs).__name__, *(number for pair in pairs for number in pair)] for pairs in made]


def shows(output):
    """A list that says that coefficient 2 is positive, as it is for 1 and not for 3."""
    return output == ["list", 2, 1]
