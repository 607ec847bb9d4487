"""DataSynthesizer 0.1.13: the smallest and largest number of a column are released as they are."""

import contextlib
import io
import random
import tempfile
from pathlib import Path

from DataSynthesizer.DataDescriber import DataDescriber

CASE = {
    "requires": "DataSynthesizer==0.1.13 pandas==2.3.3 numpy==2.3.5 scikit-learn==1.8.0",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "0:100",
    "rows": 8,
    "min_rows": 8,
    "pair": ([5, 5, 5, 5, 5, 5, 5, 90], [5, 5, 5, 5, 5, 5, 5, 5]),
    "level": "unbounded",
    "family": "synthetic data",
    "cause": ("value", "coordinate", "output[", "max"),
    "source": "https://arxiv.org/abs/2405.10994",
    "draws": 200,
}

TABLE = Path(tempfile.mkdtemp()) / "data.csv"


def _describe(data):
    describer = DataDescriber()
    TABLE.write_text("x,y\n" + "".join(f"{value},1\n" for value in data))
    with contextlib.redirect_stdout(io.StringIO()):
        describer.describe_dataset_in_independent_attribute_mode(
            str(TABLE),
            epsilon=1.0,
            attribute_to_datatype={"x": "Integer", "y": "Integer"},
            attribute_to_is_categorical={"x": False, "y": True},
            attribute_to_is_candidate_key={"x": False, "y": False},
            seed=random.SystemRandom().getrandbits(32),
        )
    return describer.data_description["attribute_description"]["x"]


def draw(data, n):
    """Ends of a column's range in the description, without a range that was given."""
    return [(lambda column: [column["min"], column["max"]])(_describe(data)) for _ in range(n)]


def shows(output):
    """The largest value is that of the person who was replaced."""
    return output[1] == 90
