"""Noise primitives of libraries: recorded once, replayed, found; stand-ins of the libraries' shapes, and real ones."""

from __future__ import annotations

import functools
import importlib
import random
import secrets
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from auditor import ApproxDP, AuditResult, Pair, PureDP, one_draw, trace
from auditor.targets.randomness.plain_draws import Replays, plain_draw

X, Y = [3.0, 0.0, 7.0], [3.0, 10.0, 7.0]
PAIR = Pair(X, Y)


def replay(function: Callable[[Any], Any], claim: Any = None, pair: Pair = PAIR, **options: Any) -> AuditResult:
    return trace(one_draw(lambda data, rng: function(data)), claim or PureDP(1.0), pair, **options)


def drawn(function: Callable[[Any], Any], data: Any = X, seed: int = 0) -> tuple[Any, list[dict[str, Any]]]:
    """Output and draws of one run."""
    runs = Replays()
    try:
        output, draws = runs.run(lambda rng: function(data), seed)
    finally:
        runs.close()
    return output, [plain_draw(draw) for draw in draws]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Makes modules that are imported for the time of a test."""

    def make(name: str, **members: Any) -> Any:
        made: Any = types.ModuleType(name)
        vars(made).update(members)
        monkeypatch.setitem(sys.modules, name, made)
        return made

    return make


# ------------------------------------------------------------------------------------ diffprivlib


class Machine:
    """As diffprivlib's mechanisms are: parameters by name, and a source of randomness of their own."""

    def __init__(self, random_state: Any = None, **parameters: Any) -> None:
        vars(self).update({"delta": 0.0, **parameters})
        self._rng: Any = secrets.SystemRandom() if random_state is None else np.random.RandomState(random_state)

    def randomise(self, value: Any) -> Any:
        raise NotImplementedError


class Laplace(Machine):
    def randomise(self, value: Any) -> Any:
        tail = -np.log(1 - self._rng.random()) * (1 if self._rng.random() < 0.5 else -1)
        return value + self.sensitivity / self.epsilon * tail  # type: ignore[attr-defined]


class LaplaceTruncated(Laplace):
    def randomise(self, value: Any) -> Any:
        return min(max(super().randomise(value), self.lower), self.upper)  # type: ignore[attr-defined]


class Gaussian(Machine):
    def randomise(self, value: Any) -> Any:
        return value + self._scale * self._rng.normalvariate(0, 1)  # type: ignore[attr-defined]


class Geometric(Machine):
    def randomise(self, value: Any) -> Any:
        size = int(np.floor(np.log(1 - self._rng.random()) * -self.sensitivity / self.epsilon))  # type: ignore[attr-defined]
        return value + size * (1 if self._rng.getrandbits(1) else -1)


@pytest.fixture
def diffprivlib(module: Callable[..., Any]) -> Iterator[None]:
    module("diffprivlib.mechanisms.base", DPMachine=Machine)
    before = Laplace.randomise, LaplaceTruncated.randomise
    yield
    assert before == (Laplace.randomise, LaplaceTruncated.randomise)


@pytest.mark.usefixtures("diffprivlib")
def test_a_mechanism_is_recorded_once_and_replayed() -> None:
    def released(data: Any) -> Any:
        return LaplaceTruncated(epsilon=0.5, sensitivity=2.0, lower=-1e6, upper=1e6).randomise(sum(data))

    (x, on_x), (y, on_y) = drawn(released), drawn(released, Y)
    assert y - x == pytest.approx(10)
    (draw,) = on_x
    assert draw["primitive"] == "diffprivlib.LaplaceTruncated"
    assert draw["parameters"] == {"epsilon": 0.5, "delta": 0.0, "sensitivity": 2.0, "lower": -1e6, "upper": 1e6}
    assert (draw["given"], on_y[0]["given"], draw["values"]) == ([10.0], [20.0], [x])
    assert draw["place"].startswith("test_recorded_primitives.py:")
    assert drawn(released, seed=1)[0] != x


@pytest.mark.usefixtures("diffprivlib")
def test_mechanisms_are_judged() -> None:
    assert replay(lambda data: Laplace(epsilon=1.0, sensitivity=10.0).randomise(sum(data))).verdict == "consistent"
    assert replay(lambda data: Geometric(epsilon=1, sensitivity=10).randomise(int(sum(data)))).verdict == "consistent"
    claim = ApproxDP(1.0, 1e-5)
    assert replay(lambda data: Gaussian(_scale=40.0, epsilon=1).randomise(sum(data)), claim).verdict == "consistent"
    for wrong, ratio in (
        (lambda data: Laplace(epsilon=1.0, sensitivity=1.0).randomise(sum(data)), 10),
        (lambda data: Geometric(epsilon=1.0, sensitivity=2).randomise(int(sum(data))), 5),
    ):
        found = replay(wrong)
        assert found.verdict == "violation"
        assert f"{ratio} times the scale of its noise; in all ε = {ratio}, claimed 1" in found.message
    bounds = replay(lambda data: Laplace(epsilon=1.0, sensitivity=max(data)).randomise(sum(data)))
    assert "sensitivity of diffprivlib.Laplace differs" in bounds.message
    constant = replay(lambda data: Laplace(random_state=3, epsilon=1.0, sensitivity=10.0).randomise(sum(data)))
    assert constant.checks[0]["name"] == "data reach the output without noise"


@pytest.mark.usefixtures("diffprivlib")
def test_draws_that_compose_beyond_the_claim() -> None:
    def laplace(value: Any, epsilon: float = 1.0) -> Any:
        return LaplaceTruncated(epsilon=epsilon, sensitivity=10.0, lower=-99, upper=99).randomise(value)

    released = replay(lambda data: [laplace(sum(data)), laplace(sum(data))])
    assert released.verdict == "violation"
    assert "2 draws of test_recorded_primitives.py" in released.message
    assert "in all ε = 2, claimed 1" in released.message
    halved = replay(lambda data: [laplace(sum(data), 0.5), laplace(sum(data), 0.5)])
    assert (halved.verdict, halved.checks) == ("consistent", ())


@pytest.mark.usefixtures("diffprivlib")
def test_a_noisy_maximum_is_not_accused() -> None:
    """Its draws lose 1.5 together, of which its output shows less than 1: a lead, and no finding."""

    def largest(data: Any) -> Any:
        return int(np.argmax([Laplace(epsilon=0.5, sensitivity=10.0).randomise(v) for v in (data[1], data[1] / 2)]))

    found = replay(largest, PureDP(0.6), draws=2000)
    assert (found.verdict, found.checks) == ("consistent", ())
    assert "in all ε = 0.75, claimed 0.6, if all of them can be read off the output" in found.message


# ------------------------------------------------------------------------------------------ OpenDP


class Measurement:
    """As OpenDP's are: a private function with a metric, a measure and a map; noise that Python does not see."""

    def __init__(self, scale: float, rng: np.random.Generator, measure: str = "MaxDivergence") -> None:
        self.scale, self.rng, self.output_measure = scale, rng, measure
        self.input_metric = "AbsoluteDistance(f64)"

    def map(self, distance: float) -> float:
        ratio = distance / self.scale
        return ratio if self.output_measure == "MaxDivergence" else ratio**2 / 2

    def __call__(self, arg: Any) -> Any:
        return importlib.import_module("opendp.core").measurement_invoke(self, arg)

    def draw(self, arg: Any) -> Any:
        made = self.rng.laplace if self.output_measure == "MaxDivergence" else self.rng.normal
        return arg + made(scale=self.scale)


class Chain(Measurement):
    """A measurement after a transformation, whose map tells of datasets."""

    def __init__(self, measurement: Measurement, transformation: Callable[[Any], Any]) -> None:
        super().__init__(measurement.scale, measurement.rng)
        self.input_metric, self.parts = "SymmetricDistance()", (measurement, transformation)

    def draw(self, arg: Any) -> Any:
        return self.parts[0].draw(self.parts[1](arg))


@pytest.fixture
def opendp(module: Callable[..., Any]) -> Any:
    module("opendp.combinators", make_chain_mt=Chain)
    return module("opendp.core", measurement_invoke=lambda this, arg: this.draw(arg), queryable_eval=lambda *_: 0)


def test_measurements_are_recorded_by_their_maps(opendp: Any) -> None:
    rng = np.random.default_rng(5)
    held = Measurement(10.0, np.random.default_rng(6))
    (draw,) = drawn(lambda data: held(sum(data)))[1]
    assert (draw["primitive"], draw["family"], draw["given"]) == ("opendp.Measurement", "laplace", [10.0])
    assert draw["scales"] == pytest.approx([10.0])
    normal = Measurement(3.0, rng, "ZeroConcentratedDivergence")
    (draw,) = drawn(lambda data: normal(sum(data)))[1]
    assert (draw["family"], draw["scales"]) == ("gaussian", pytest.approx([3.0]))
    assert replay(lambda data: held(sum(data))).verdict == "consistent"
    assert replay(lambda data: Measurement(2.0, rng)(sum(data))).verdict == "violation"

    def chained(data: Any) -> Any:
        return sys.modules["opendp.combinators"].make_chain_mt(Measurement(5.0, rng), sum)(data)

    assert "2 times the scale of its noise" in replay(chained).message
    hidden = Chain(held, sum)  # made before the call: what its noise is added to is not seen
    assert replay(lambda data: hidden(data)).verdict == "consistent"
    found = replay(lambda data: opendp.queryable_eval(0, 1) + 1)
    assert found.verdict == "inconclusive"
    assert "it asks a queryable of opendp" in found.message


# ------------------------------------------------------------------------------------------- PyDP


@pytest.fixture
def pydp(module: Callable[..., Any]) -> Any:
    native = types.SimpleNamespace(rng=np.random.default_rng(7))

    class NumericalMechanism:
        def __init__(self, epsilon: float, sensitivity: float) -> None:
            self.epsilon, self.sensitivity = epsilon, sensitivity

        def add_noise(self, result: Any) -> Any:
            return result + native.rng.laplace(scale=self.sensitivity / self.epsilon)

    class LaplaceMechanism(NumericalMechanism):
        pass

    class MetaAlgorithm:
        def __init__(self, epsilon: float) -> None:
            self.epsilon, self.delta, self.rows = epsilon, 0.0, list[float]()

        def add_entry(self, value: float) -> None:
            self.rows.append(value)

        def add_entries(self, data: list[float]) -> None:
            self.rows += data

        def reset(self) -> None:
            self.rows = []

        def quick_result(self, data: list[float]) -> float:
            return float(sum(data) + native.rng.laplace(scale=10 / self.epsilon))

        def result(self) -> float:
            return float(sum(self.rows) + native.rng.laplace(scale=10 / self.epsilon))

    native.NumericalMechanism, native.LaplaceMechanism = NumericalMechanism, LaplaceMechanism
    module("pydp._pydp", _mechanisms=native)
    module("pydp.algorithms._algorithm", MetaAlgorithm=MetaAlgorithm)
    return types.SimpleNamespace(laplace=LaplaceMechanism, sum=MetaAlgorithm)


def test_noise_of_pydp_is_replayed_and_its_algorithms_are_composed(pydp: Any) -> None:
    assert replay(lambda data: pydp.laplace(1.0, 10.0).add_noise(sum(data))).verdict == "consistent"
    assert replay(lambda data: pydp.laplace(1.0, 4.0).add_noise(sum(data))).verdict == "violation"

    def entered(data: Any) -> Any:
        made = pydp.sum(1.0)
        made.add_entry(9.0)
        made.reset()
        made.add_entries(data[:2])
        made.add_entry(data[2])
        return made.result()

    (draw,) = drawn(entered)[1]
    assert (draw["primitive"], draw["given"], draw["family"]) == ("pydp.MetaAlgorithm", X, "")
    assert replay(entered).verdict == "consistent"
    twice = replay(lambda data: [pydp.sum(1.0).quick_result(data) for _ in range(2)], PureDP(1.0))
    assert twice.verdict == "violation"
    assert "in all ε = 2, claimed 1" in twice.message
    same = replay(lambda data: pydp.sum(1.0).quick_result(data[:1]))  # equal rows: the answer stays the same
    assert same.verdict == "consistent"


# ------------------------------------------------------------------------------------------ torch


@pytest.fixture
def torch(module: Callable[..., Any]) -> Any:
    """As torch is: a generator of its own that is seeded, read and set back, functions and methods in place."""

    class Generator:
        def __init__(self) -> None:
            self.rng = np.random.RandomState(1)

    class Tensor(np.ndarray):
        def normal_(self, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Any:
            self[...] = (generator or made.default).rng.normal(mean, std, self.shape)
            return self

    made = module("torch", Generator=Generator, Tensor=Tensor, default=Generator())
    made.manual_seed = lambda seed: made.default.rng.seed(seed % 2**32)
    made.get_rng_state = lambda: made.default.rng.get_state()
    made.set_rng_state = lambda state: made.default.rng.set_state(state)
    made.seed = made.manual_seed
    made.empty = lambda size: np.zeros(size).view(Tensor)
    made.normal = lambda mean, std, size=(), generator=None: (generator or made.default).rng.normal(mean, std, size)
    return made


def test_draws_of_torch_are_recorded(torch: Any) -> None:
    held = torch.Generator()
    claim = ApproxDP(1.0, 1e-5)
    for own in (None, held):

        def released(data: Any, scale: float, own: Any = own) -> float:
            return float(sum(data) + torch.normal(0.0, scale, generator=own))

        assert replay(functools.partial(released, scale=40.0), claim).verdict == "consistent"
        assert "2.5 times the scale of its noise" in replay(functools.partial(released, scale=4.0), claim).message
    filled = replay(lambda data: float(sum(data)) + torch.empty(1).normal_(0.0, 5.0)[0], claim)
    assert "2 times the scale of its noise" in filled.message
    constant = replay(lambda data: float(sum(data) + torch.normal(0.0, 40.0, generator=torch.Generator())), claim)
    assert constant.checks[0]["name"] == "data reach the output without noise"
    assert "it seeds torch itself" in replay(lambda data: torch.manual_seed(1)).message
    assert torch.Generator is type(held)
    state = torch.get_rng_state()
    drawn(lambda data: torch.normal(0.0, 1.0))
    assert repr(torch.get_rng_state()) == repr(state)


# ------------------------------------------------------------------------------------ other sources


def test_generators_of_the_system_are_recorded_and_put_back() -> None:
    held = secrets.SystemRandom()

    def released(data: Any) -> Any:
        return sum(data) + held.gauss(0.0, 40.0) + random.SystemRandom().normalvariate(0.0, 1.0)

    assert [draw["primitive"] for draw in drawn(released)[1]] == ["random.gauss", "random.normalvariate"]
    assert replay(released, ApproxDP(1.0, 1e-5)).verdict == "consistent"
    assert "gauss" not in vars(random.SystemRandom)
    assert 0 <= held.random() < 1


def test_bytes_and_names_are_recorded() -> None:
    def released(_data: Any) -> Any:
        return secrets.token_hex(4), secrets.token_urlsafe(), str(importlib.import_module("uuid").uuid4())

    (one, draws), (two, _) = drawn(released), drawn(released)
    assert one == two
    assert [len(part) for part in one] == [8, 43, 36]
    assert [draw["primitive"] for draw in draws] == ["secrets.token_hex", "secrets.token_urlsafe", "uuid.uuid4"]
    assert drawn(released, seed=1)[0] != one


def test_the_older_generator_that_libraries_take_is_recorded() -> None:
    """`check_random_state(None)` of scikit-learn hands out the generator behind ``numpy.random``."""
    found = drawn(lambda data: np.random.mtrand._rand.normal(0.0, 2.0, size=3))[1]
    assert [(draw["primitive"], draw["scales"]) for draw in found] == [("numpy.random.normal", [2.0] * 3)]
    assert type(np.random.mtrand._rand) is np.random.RandomState


def test_a_clamped_sum_is_not_accused() -> None:
    """Where the noisy sum lies beyond the clamp on one dataset only, noise seems not to reach it."""
    for seed in range(8):

        def clamped(data: Any) -> Any:
            return max(0.0, sum(data) - 20 + np.random.default_rng().normal(scale=50.0))

        assert replay(clamped, ApproxDP(1.0, 1e-5), seed=10 * seed).verdict == "consistent"


# ------------------------------------------------------------------------------- real libraries


def test_real_diffprivlib() -> None:
    mechanisms = pytest.importorskip("diffprivlib.mechanisms")
    right = replay(lambda data: mechanisms.Laplace(epsilon=1.0, sensitivity=10).randomise(sum(data)))
    assert right.verdict == "consistent"
    wrong = replay(lambda data: mechanisms.Laplace(epsilon=1.0, sensitivity=1).randomise(sum(data)))
    assert wrong.verdict == "violation"


def test_real_torch() -> None:
    library = pytest.importorskip("torch")
    claim = ApproxDP(1.0, 1e-5)
    right = replay(lambda data: (library.tensor(data).sum() + library.normal(0.0, 40.0, (1,))).item(), claim)
    assert right.verdict == "consistent"
    wrong = replay(lambda data: (library.tensor(data).sum() + library.normal(0.0, 10.0, (1,))).item(), claim)
    assert wrong.verdict == "violation"
