"""smartnoise-synth 1.0.8: the histogram of MWEM ends at the largest category that occurs in the data."""

import contextlib
import io
import warnings

from snsynth.mwem import MWEMSynthesizer
from snsynth.transform import LabelTransformer, TableTransformer

CASE = {
    "requires": "smartnoise-synth==1.0.8 torch==2.13.0",
    "fixed": "",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "a,b,c,d",
    "rows": 8,
    "min_rows": 8,
    "pair": (["a", "a", "b", "b", "b", "c", "c", "d"], ["a", "a", "b", "b", "b", "c", "c", "c"]),
    "level": "unbounded",
    "family": "synthetic data",
    "cause": ("value", "never", "only", "length"),
    "source": "https://github.com/opendp/smartnoise-sdk/issues/473",
    "draws": 300,
}


def _transformer():
    transformer = TableTransformer([LabelTransformer(nullable=False)])
    transformer.fit([[value] for value in "abcd"])
    return transformer


def draw(data, n):
    """Forty synthetic values; the transformer was fitted on the public categories a, b, c and d."""
    drawn, transformer = [], _transformer()
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("error")
        for _ in range(n):
            synthesizer = MWEMSynthesizer(epsilon=1.0, q_count=2, iterations=1)
            synthesizer.fit([[value] for value in data], transformer=transformer)
            drawn.append(sorted(row[0] for row in synthesizer.sample(40)))
    return drawn


def shows(output):
    """The category of the person who was replaced is there."""
    return "d" in output
