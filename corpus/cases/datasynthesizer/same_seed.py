"""DataSynthesizer 0.1.13: is the noise meant to be seeded with 0 where no seed is given, always the same?"""

import contextlib
import io
import json
import tempfile
from pathlib import Path

from DataSynthesizer.DataDescriber import DataDescriber

CASE = {
    "requires": "DataSynthesizer==0.1.13 pandas==2.3.3 numpy==2.3.5 scikit-learn==1.8.0",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "a,b",
    "rows": 8,
    "min_rows": 8,
    "pair": (["a", "a", "a", "a", "b", "b", "b", "b"], ["a", "a", "a", "b", "b", "b", "b", "b"]),
    "level": "unbounded",
    "family": "synthetic data",
    "cause": ("value", "never", "only"),
    "source": "",
    "draws": 200,
}

FOLDER = Path(tempfile.mkdtemp())
DOMAIN = FOLDER / "domain.json"
DOMAIN.write_text(json.dumps({"city": ["a", "b"]}))
TYPES = {"attribute_to_datatype": {"city": "String"}, "attribute_to_is_categorical": {"city": True}}


def _describe(data):
    table, describer = FOLDER / "data.csv", DataDescriber()
    table.write_text("city\n" + "".join(f"{value}\n" for value in data))
    with contextlib.redirect_stdout(io.StringIO()):
        describer.describe_dataset_in_independent_attribute_mode(
            str(table),
            epsilon=1.0,
            attribute_to_is_candidate_key={"city": False},
            categorical_attribute_domain_file=str(DOMAIN),
            **TYPES,
        )
    return describer.data_description["attribute_description"]["city"]["distribution_probabilities"]


def draw(data, n):
    """Noisy distribution of a column whose domain is given, at the default seed."""
    return [_describe(data) for _ in range(n)]


def shows(output):
    """The first probability is above 0.4. If each call drew its own noise, it would fall on both sides."""
    return output[0] > 0.4
