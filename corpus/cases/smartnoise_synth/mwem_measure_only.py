"""smartnoise-synth 1.0.8: is the noise of MWEM that only measures meant for a replaced row?"""

import contextlib
import io
import warnings

from snsynth.mwem import MWEMSynthesizer
from snsynth.transform import LabelTransformer, TableTransformer

CASE = {
    "requires": "smartnoise-synth==1.0.8 torch==2.13.0",
    "fixed": "",
    "claim": "epsilon=2",
    "relation": "replace-one",
    "domain": "a,b",
    "rows": 8,
    "min_rows": 8,
    "pair": (["a", "a", "a", "a", "a", "a", "a", "b"], ["a", "a", "a", "a", "a", "a", "b", "b"]),
    "level": 2.5,
    "family": "synthetic data",
    "cause": (),
    "source": "",
    "draws": 8000,
}


def draw(data, n):
    """Share of the first category in the histogram of MWEM, which measures once and does not select."""
    transformer = TableTransformer([LabelTransformer(nullable=False)])
    transformer.fit([["a"], ["b"]])
    drawn = []
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        for _ in range(n):
            synthesizer = MWEMSynthesizer(
                epsilon=2.0, q_count=1, iterations=1, measure_only=True, mult_weights_iterations=1
            )
            synthesizer.fit([[value] for value in data], transformer=transformer)
            histogram = synthesizer.synthetic_histograms[0][0]
            drawn.append(float(histogram[0] / sum(histogram)))
    return drawn


def shows(output):
    """The share is high. Its mean is 0.587 on the first dataset, and 0.558 on the second."""
    return output > 0.595
