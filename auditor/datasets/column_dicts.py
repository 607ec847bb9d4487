"""Datasets that are dicts of equally long arrays or lists, such as X and y; other members belong to no row."""

from __future__ import annotations

from typing import Any

import numpy as np


def get_columns(data: Any) -> dict[Any, Any]:
    """Return the members of a dict that are arrays or lists."""
    if not isinstance(data, dict):
        return {}
    return {name: part for name, part in data.items() if _is_column(part)}


def is_column_dict(data: Any) -> bool:
    """Whether a dataset is a dict of equally long columns."""
    return len({len(column) for column in get_columns(data).values()}) == 1


def _is_column(part: Any) -> bool:
    return isinstance(part, list | tuple) or (isinstance(part, np.ndarray) and part.ndim > 0)
