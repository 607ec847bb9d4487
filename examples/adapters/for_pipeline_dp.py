r"""PipelineDP, https://pipelinedp.io: counts of private partitions and a sum, run by its local backend.

    dpaudit attack 'pip:pipeline-dp==0.3.1#examples/adapters/for_pipeline_dp.py:categories' \
        --claim "epsilon=1, delta=0.01" --relation add-remove-one --domain a,b --rows 10 --min-rows 1
    dpaudit attack 'pip:pipeline-dp==0.3.1#examples/adapters/for_pipeline_dp.py:total' \
        --claim "epsilon=1" --relation add-remove-one --domain 0.0,1.0 --rows 10

A row is one person's. Each draw is a pipeline of its own, with a budget of its own. Which categories are released
depends on how many people they have; with delta = 0.01, small ones are released often enough to be seen.
"""

import pipeline_dp as dp


def _aggregate(rows, delta, public, **options):
    accountant = dp.NaiveBudgetAccountant(total_epsilon=1.0, total_delta=delta)
    engine = dp.DPEngine(accountant, dp.LocalBackend())
    of_row = dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    params = dp.AggregateParams(
        noise_kind=dp.NoiseKind.LAPLACE, max_partitions_contributed=1, max_contributions_per_partition=1, **options
    )
    released = engine.aggregate(rows, params, of_row, public_partitions=public)
    accountant.compute_budgets()
    return list(released)


def categories(data, n):
    """Count the people of each category; a dict of the categories that are released."""
    rows = [(person, category, 1) for person, category in enumerate(data)]
    drawn = (_aggregate(rows, 0.01, None, metrics=[dp.Metrics.COUNT]) for _ in range(n))
    return [{category: counted.count for category, counted in released} for released in drawn]


def total(data, n):
    """Sum of all rows, clamped to [0, 1]."""
    rows, options = [(person, "all", value) for person, value in enumerate(data)], {"min_value": 0, "max_value": 1}
    return [_aggregate(rows, 0.0, ["all"], metrics=[dp.Metrics.SUM], **options)[0][1].sum for _ in range(n)]
