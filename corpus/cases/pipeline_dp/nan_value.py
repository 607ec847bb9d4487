"""pipeline-dp 0.3.1: is the sum of a partition meant to be NaN exactly when a value is?"""

import pipeline_dp as dp

CASE = {
    "requires": "pipeline-dp==0.3.1",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "0.0,1.0",
    "outside": True,
    "rows": 4,
    "min_rows": 1,
    "pair": ([1.0, "nan"], [1.0, 1.0]),
    "level": "unbounded",
    "family": "sensitivities and bounds",
    "cause": ("NaN",),
    "source": "",
    "draws": 1000,
}


def _total(rows):
    accountant = dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=0.0)
    engine = dp.DPEngine(accountant, dp.LocalBackend())
    places = [lambda row: row[0], lambda row: row[1], lambda row: row[2]]
    extractors = dp.DataExtractors(
        privacy_id_extractor=places[0], partition_extractor=places[1], value_extractor=places[2]
    )
    params = dp.AggregateParams(
        noise_kind=dp.NoiseKind.LAPLACE,
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        metrics=[dp.Metrics.SUM],
        min_value=0,
        max_value=1,
    )
    released = engine.aggregate(rows, params, extractors, public_partitions=["all"])
    accountant.compute_budgets()
    return next(iter(released))[1].sum


def draw(data, n):
    """Sum of rows, clamped to [0, 1]."""
    rows = [(person, "all", value) for person, value in enumerate(data)]
    return [_total(rows) for _ in range(n)]


def shows(output):
    """It is NaN."""
    return output != output
