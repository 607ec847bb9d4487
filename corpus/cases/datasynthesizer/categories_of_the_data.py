"""DataSynthesizer 0.1.13: the categories of a column are those that occur in the data."""

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
    "domain": "a,b,c",
    "rows": 8,
    "min_rows": 8,
    "pair": (["a", "a", "a", "a", "b", "b", "b", "c"], ["a", "a", "a", "a", "b", "b", "b", "b"]),
    "level": "unbounded",
    "family": "synthetic data",
    "cause": ("present", "length", "value", "member"),
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
            attribute_to_datatype={"x": "String", "y": "Integer"},
            attribute_to_is_categorical={"x": True, "y": True},
            attribute_to_is_candidate_key={"x": False, "y": False},
            seed=random.SystemRandom().getrandbits(32),
        )
    return describer.data_description["attribute_description"]["x"]


def draw(data, n):
    """Categories of a column in the description, without a domain that was given."""
    return [_describe(data)["distribution_bins"] for _ in range(n)]


def shows(output):
    """The category of the person who was replaced is there."""
    return "c" in output
