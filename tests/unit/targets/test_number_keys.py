"""Keys of numbers: those of arrays, of scalars one by one and of lists are the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.targets.outputs import hash_outputs

#: Several bit patterns of NaN among the floats, and the ends of what floats and integers hold exactly.
FLOATS = [0.0, -0.0, math.inf, -math.inf, 5e-324, -1e-310, 0.1, 2.0**53, 2.0**53 + 2, -(2.0**63), 2.0**64, 1.8e308 / 10]
NANS = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001], np.uint64).view(np.float64)
INTEGERS = [0, 1, -1, 2**31, 2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1, 2**60, 2**63 - 1, -(2**63)]
BITS = np.random.default_rng(0).integers(0, 2**64, 1_000, dtype=np.uint64)


def sample(kind: str) -> NDArray[Any]:
    dtype = np.dtype(kind)
    if dtype.kind == "f":
        with np.errstate(all="ignore"):
            return np.concatenate([FLOATS, NANS, BITS.view(np.float64), BITS / 2.0**64]).astype(dtype)
    if dtype.kind == "b":
        return np.array([True, False])
    limits = np.iinfo(dtype)
    known = [value for value in (*INTEGERS, 2**64 - 1) if limits.min <= value <= limits.max]
    return np.concatenate([np.array(known, dtype), BITS.astype(dtype)])


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", ">f8", "g", "i1", "i2", "i4", "i8", ">i4", "u1", "u4", "u8", "?"])
def test_a_number_has_one_key_however_it_is_read(kind: str) -> None:
    values = sample(kind)
    keys = hash_outputs(values).tolist()
    plain = values.tolist()  # of Python, but for long doubles
    assert [hash_outputs([value]).item() for value in values] == keys
    assert [hash_outputs([value]).item() for value in plain] == keys
    assert hash_outputs(plain).tolist() == keys
    assert hash_outputs([[value] for value in plain]).tolist() == hash_outputs(values[:, None]).tolist()


def test_equal_floats_have_one_key_and_different_ones_have_others() -> None:
    values = np.unique(np.concatenate([FLOATS, BITS.view(np.float64)]))
    values = values[~np.isnan(values)]
    assert len(set(hash_outputs(values).tolist())) == len(values)
    assert hash_outputs(np.array([0.0])) == hash_outputs(np.array([-0.0]))
    assert len(set(hash_outputs(NANS).tolist())) == 1
    assert len(set(hash_outputs([2**53, 2**53 + 1, 2**53 + 2, 2**60, 2**60 + 1]).tolist())) == 5
