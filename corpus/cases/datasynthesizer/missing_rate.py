"""DataSynthesizer 0.1.13: is the share of missing values meant to be released without noise?"""

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
    "domain": "3,NA",
    "rows": 8,
    "min_rows": 8,
    "pair": ([3, 3, 3, 3, 3, 3, 3, "NA"], [3, 3, 3, 3, 3, 3, 3, 3]),
    "level": "unbounded",
    "family": "synthetic data",
    "cause": ("value", "never", "only"),
    "source": "",
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
            numerical_attribute_ranges={"x": [0, 10]},
            seed=random.SystemRandom().getrandbits(32),
        )
    return describer.data_description["attribute_description"]["x"]


def draw(data, n):
    """Share of missing values in the description, with a range that was given."""
    return [_describe(data)["missing_rate"] for _ in range(n)]


def shows(output):
    """Some value is missing."""
    return output > 0
