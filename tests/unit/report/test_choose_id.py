"""One rule chooses a claim of results by its id, for replays, evidence sheets and maintainers' pages."""

from __future__ import annotations

import pytest

from auditor.errors import SpecificationError
from auditor.results import choose_id

IDS = ["a/L1/pure_dp", "a/L1/pure_dp/bits", "b/L1/pure_dp/bits"]


@pytest.mark.parametrize(
    ("ids", "part", "found"),
    [(IDS, "a/L1/pure_dp", 0), (IDS, "b/", 2), (IDS, "b/L1/pure_dp/bits", 2), (IDS[:1], None, 0)],
)
def test_an_id_or_a_part_of_one_alone_is_chosen(ids: list[str], part: str | None, found: int) -> None:
    assert choose_id(ids, part, "claims") == ids[found]


@pytest.mark.parametrize(
    ("ids", "part", "said"),
    [
        ([], None, "the results have no claims"),
        ([], "a", "the results have no claims"),
        (IDS, None, "the results have 3 claims: name one of a/L1/pure_dp, "),
        (IDS, "bits", "the results have 2 claims whose id contains 'bits': a/L1/pure_dp/bits, b/L1/pure_dp/bits"),
        (["{a}/1", "{a}/2"], "{a}", "the results have 2 claims whose id contains '{a}': {a}/1, {a}/2"),
        (IDS, "a/L1/pure_pd", "none of the claims has 'a/L1/pure_pd' in its id; did you mean a/L1/pure_dp?"),
        (IDS, "{}", "none of the claims has '{}' in its id; ids are a/L1/pure_dp, "),
        ([f"{k}" for k in range(10)] * 2, "", ": 0, 1, 2, 3, 4, ..."),
    ],
)
def test_none_and_several_are_refused(ids: list[str], part: str | None, said: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        choose_id(ids, part, "claims")
    assert said in str(caught.value)
