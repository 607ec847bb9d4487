"""What evidence is about: every attribute of a target counts, or the object that cannot be seen is named."""

from __future__ import annotations

import functools
import logging
import random
import sys
import threading
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from auditor.audits.context import Question
from auditor.audits.privacy import run_audit
from auditor.audits.privacy_loop import Settings
from auditor.datasets import Pair
from auditor.errors import SpecificationError
from auditor.privacy.guarantees import PureDP
from auditor.results import Verdict
from auditor.runs.ledger import Ledger
from auditor.runs.ledger.fingerprint import collect_parts, fingerprint_parts
from auditor.targets.content import spell_out
from auditor.targets.http import HttpTarget
from auditor.targets.process import ProcessTarget

PAIR = [Pair(0, 1, "0 against 1")]


class Private:
    """Its only parameter is private."""

    def __init__(self, eps: float) -> None:
        self._eps = eps

    def __call__(self, data: int, n: int, rng: np.random.Generator) -> Any:
        kept = rng.random(n) < np.exp(self._eps) / (1 + np.exp(self._eps))
        return np.where(kept, data, 1 - data)


class Mangled:
    def __init__(self, eps: float) -> None:
        self.__eps = eps

    def eps(self) -> float:
        return self.__eps


class Slotted:
    __slots__ = ("_eps",)

    def __init__(self, eps: float) -> None:
        self._eps = eps


class Inherited(Slotted):
    __slots__ = ("more",)


class Both(Slotted):
    """Slots of its base, and a dictionary."""


class Named:
    """The names of what is not looked at in processes."""

    def __init__(self, eps: float) -> None:
        self.limit = self.env = eps


@dataclass(frozen=True)
class Frozen:
    base: int = 0
    _eps: float = field(default=1.0, init=False, repr=False, compare=False)

    @staticmethod
    def of(eps: float) -> Frozen:
        made = Frozen()
        object.__setattr__(made, "_eps", eps)
        return made


@dataclass(frozen=True)
class Beside:
    """An attribute that is no field."""

    @staticmethod
    def of(eps: float) -> Beside:
        made = Beside()
        object.__setattr__(made, "_eps", eps)
        return made


class Held(list[int]):
    def __init__(self, eps: float) -> None:
        super().__init__([1])
        self._eps = eps


class Number(float):
    """Its attribute is not its value."""

    _eps = 0.0


class Looped:
    def __init__(self, eps: float) -> None:
        self._other = types.SimpleNamespace(back=self, eps=eps)


def _with(eps: float, make: Callable[[], Any]) -> Any:
    made = make()
    made._eps = eps
    return made


def _function(eps: float) -> Any:
    def flip(data: int) -> int:
        return data

    vars(flip)["_eps"] = eps
    return flip


def _masked(eps: float) -> Any:
    return np.ma.masked_array([1.0, 2.0], mask=[eps > 1, False])


MADE: list[Callable[[float], Any]] = [
    Private,
    Mangled,
    Slotted,
    Inherited,
    Both,
    Named,
    Frozen.of,
    Beside.of,
    Held,
    lambda eps: _with(eps, lambda: Number(1.0)),
    Looped,
    lambda eps: Private(eps).__call__,
    lambda eps: functools.partial(_function, eps),
    lambda eps: _with(eps, lambda: functools.partial(Private(1.0))),
    lambda eps: lru_cache(lambda data: data * eps),
    _function,
    _masked,
    lambda eps: deque([eps]),
    lambda eps: OrderedDict(_eps=eps),
    lambda eps: defaultdict(float, _eps=eps),
    lambda eps: types.MappingProxyType({"_eps": eps}),
    lambda eps: {"a": [{3: (eps,)}]},
    lambda eps: np.array([Private(eps)], dtype=object),
    lambda eps: np.array([(1, eps)], dtype=[("a", int), ("b", float)]),
    lambda eps: stats.norm(loc=0, scale=eps),  # it draws from the generator of the process, which is not its own
    lambda eps: Path(f"{eps}"),
    lambda eps: slice(0, eps),
    lambda eps: [Private(eps)].append,
    lambda eps: ProcessTarget([sys.executable, "-c", f"{eps}"]),
    lambda eps: ProcessTarget([sys.executable], env={"EPS": f"{eps}"}),
    lambda eps: HttpTarget(f"http://localhost:1/?eps={eps}"),
]


@pytest.mark.parametrize("made", MADE)
def test_every_attribute_counts(made: Callable[[float], Any]) -> None:
    assert spell_out(made(1.0)) == spell_out(made(1.0))
    assert spell_out(made(1.0)) != spell_out(made(3.0))
    held = [spell_out(types.SimpleNamespace(_inside=made(eps))) for eps in (1.0, 1.0, 3.0)]
    assert held[0] == held[1] != held[2]


def test_slots_that_are_not_set_are_no_error() -> None:
    assert spell_out(Inherited(1.0)) != spell_out(Slotted(1.0))


class Keeping:
    """What no draw depends on."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._log = logging.getLogger("keeping")
        self._again = threading.Condition()

    @cached_property
    def table(self) -> list[float]:
        return [1.0]

    @lru_cache  # noqa: B019 - it is the cache that is tested
    def remembered(self, k: int) -> int:
        return k


def test_caches_locks_and_loggers_are_left_out_by_type() -> None:
    keeping = Keeping()
    before = spell_out(keeping)
    assert keeping.table
    assert keeping.remembered(3) == 3
    keeping._lock.acquire()
    keeping._log.setLevel(10)
    assert spell_out(keeping) == before
    keeping._lock.release()
    keeping._cache = {1: 2}  # type: ignore[attr-defined]
    assert spell_out(keeping) != before  # by name nothing is: a dictionary may hold parameters


def _deep(levels: int) -> Any:
    return 1 if not levels else [_deep(levels - 1)]


@pytest.mark.parametrize(
    ("held", "named"),
    [
        (lambda: np.random.default_rng(1), "numpy.random._generator.Generator"),
        (lambda: np.random.default_rng(1).normal, "numpy.random._generator.Generator"),
        (lambda: random.Random(1), "random.Random"),
        (lambda: Path(__file__).open(encoding="utf-8"), "_io.TextIOWrapper"),  # noqa: SIM115 - closed below
        (lambda: (k for k in range(3)), "builtins.generator"),
        (lambda: memoryview(b"abc"), "builtins.memoryview"),
        (lambda: _deep(20), "12 levels down"),
    ],
)
def test_what_cannot_be_seen_is_named_and_a_key_is_asked_for(held: Callable[[], Any], named: str) -> None:
    made = types.SimpleNamespace(_of=[held()])
    with pytest.raises(
        SpecificationError, match=r"the target\._of\[0\].*" + named.replace(".", r"\.") + ".*--ledger-key"
    ):
        collect_parts(made, PureDP(1.0), PAIR, None, "")
    assert (
        collect_parts(made, PureDP(1.0), PAIR, None, "v1")["mechanism"]
        == collect_parts(made, PureDP(1.0), PAIR, None, "v1")["mechanism"]
    )
    if hasattr(made._of[0], "close"):
        made._of[0].close()


def test_the_generators_of_the_process_may_be_named() -> None:
    assert spell_out([np.random.normal, random.gauss]) == spell_out([np.random.normal, random.gauss])


def test_a_dataset_that_cannot_be_seen_is_named() -> None:
    pairs = [Pair([1], [iter([random.Random(1)])], "odd")]
    with pytest.raises(SpecificationError, match=r"dataset y of the pair 'odd'\[0\]"):
        collect_parts(Private(1.0), PureDP(1.0), pairs, None, "")
    assert collect_parts(Private(1.0), PureDP(1.0), pairs, None, "", private=True)  # only their names count


def test_the_source_of_a_private_part_counts_wherever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("parts", "wholes"):
        (tmp_path / name).mkdir()
        monkeypatch.syspath_prepend(str(tmp_path / name))
    part, whole = tmp_path / "parts" / "ledger_part.py", tmp_path / "wholes" / "ledger_whole.py"
    part.write_text("class Part:\n    pass\n", encoding="utf-8")
    whole.write_text("class Whole:\n    def __init__(self, part):\n        self._part = part\n", encoding="utf-8")
    import ledger_part  # type: ignore[import-not-found]
    import ledger_whole  # type: ignore[import-not-found]

    target = ledger_whole.Whole(ledger_part.Part())
    before = collect_parts(target, PureDP(1.0), PAIR, None, "")
    part.write_text("class Part:\n    eps = 3\n", encoding="utf-8")
    after = collect_parts(target, PureDP(1.0), PAIR, None, "")
    assert {name for name in before if before[name] != after[name]} == {"source"}


def test_the_version_of_a_package_that_a_target_is_of_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[frozenset[str]] = []

    def versions(names: frozenset[str]) -> list[str]:
        asked.append(names)
        return []

    monkeypatch.setattr("auditor.runs.ledger.fingerprint.list_versions", versions)
    target: Any = stats.norm(loc=0, scale=1)
    collect_parts(target, PureDP(1.0), PAIR, None, "")
    assert "scipy" in asked[-1]


def test_what_follows_the_question_mark_of_a_url_counts() -> None:
    names = [f"http://me:{secret}@localhost:1/flip?eps={eps}" for secret, eps in (("a", 1), ("b", 1), ("a", 3))]
    prints = [
        fingerprint_parts(collect_parts(HttpTarget("http://localhost:1"), PureDP(1.0), PAIR, name, ""))
        for name in names
    ]
    assert prints[0] == prints[1] != prints[2]


def test_evidence_against_a_private_parameter_ends_with_it(tmp_path: Path) -> None:
    settings = Settings(draws=2_000, independence=False, alpha=1e-6)

    def night(eps: float) -> Any:
        question = Question("own/private/L1/pure_dp/given", ledger=Ledger(tmp_path / "ledger"))
        return run_audit(Private(eps), PureDP(1.0), PAIR, settings, question)

    # At epsilon 3 a draw gains 0.5 nats, so that 1,000 a side leave no doubt; at 0.5 an alarm has probability 1e-6.
    assert night(3.0).verdict == Verdict.VIOLATION
    repaired = night(0.5)
    assert repaired.verdict != Verdict.VIOLATION
    assert repaired.ledger["afresh"] == "changed: mechanism"
