"""Random numbers of torch, which are recorded where it is imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .patching import Substitute, refuse_call

#: Functions of torch that draw, with the names of their first parameters, and methods of tensors that fill in place.
FUNCTIONS = {
    "randn": (),
    "rand": (),
    "normal": ("mean", "std"),
    "randn_like": ("input",),
    "rand_like": ("input",),
    "randint": (),
    "randint_like": ("input",),
    "randperm": ("n",),
    "bernoulli": ("input",),
    "multinomial": ("input", "num_samples", "replacement"),
    "poisson": ("input",),
    "binomial": ("count", "prob"),
}
METHODS = {
    "normal_": ("mean", "std"),
    "uniform_": ("from", "to"),
    "bernoulli_": ("p",),
    "exponential_": ("lambd",),
    "random_": ("from", "to"),
    "cauchy_": ("median", "sigma"),
    "geometric_": ("p",),
    "log_normal_": ("mean", "std"),
    "bernoulli": (),
    "multinomial": ("num_samples", "replacement"),
}
#: What these are by default.
_DEFAULTS = {"normal_": {"mean": 0.0, "std": 1.0}, "normal": {"mean": 0.0, "std": 1.0}}
_SEEDS = ("manual_seed", "seed", "set_rng_state")


def find_torch_draws(current: Callable[[], Any]) -> Iterator[Substitute]:
    """What to replace, if torch is imported.

    Parameters
    ----------
    current : callable
        Gives the tape of the current call.
    """
    torch: Any = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "manual_seed"):
        return
    made = type("Generator", (torch.Generator,), {})  # those that the call makes
    yield torch, "Generator", made
    for name, parameters in FUNCTIONS.items():
        if hasattr(torch, name):
            function = getattr(torch, name)
            yield torch, name, _recorded_function(torch, function, f"torch.{name}", parameters, made, current)
    for name, parameters in METHODS.items():
        if hasattr(torch.Tensor, name):
            method, said = getattr(torch.Tensor, name), f"torch.Tensor.{name}"
            yield torch.Tensor, name, _recorded_function(torch, method, said, ("self", *parameters), made, current)
    for name in _SEEDS:
        yield torch, name, refuse_call("seeds torch itself")


def _recorded_function(
    torch: Any,
    function: Callable[..., Any],
    primitive: str,
    parameters: tuple[str, ...],
    made: Any,
    current: Callable[[], Any],
) -> Callable[..., Any]:
    """A function that draws from torch's own generator, which is seeded for this draw and then set back.

    So it is with generators that are older than the call. One that the call has made has the seed that it was given.
    """
    seed, state, put_back = torch.manual_seed, torch.get_rng_state, torch.set_rng_state

    def draw(*values: Any, **named: Any) -> Any:
        if type(named.get("generator")) is made:
            return function(*values, **named)
        passed = {name: value for name, value in named.items() if name != "generator"}

        def call(rng: np.random.Generator) -> Any:
            before = state()
            seed(int(rng.integers(2**63)))
            try:
                return function(*values, **passed)
            finally:
                put_back(before)

        known = dict(_DEFAULTS.get(primitive.rpartition(".")[2], {}))
        known.update(zip(parameters, values, strict=False))
        known.update(passed)
        known.pop("self", None)
        return current().record(primitive, call, None, (), known)

    return draw
