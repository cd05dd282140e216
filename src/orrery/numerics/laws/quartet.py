"""Loss of a model trained with FP4 products, and where that beats FP8 once FP4 products are faster.

    L = (A / (N eff_N)^alpha + B / (D eff_D)^beta)^gamma + E

A coarse forward pass makes parameters count less (eff_N), a coarse backward pass tokens (eff_D). What is saved buys
more of both: a model whose forward pass costs what FP8's costs is larger by the forward speed-up s_f, and the training
time that is left pays for D s / s_f tokens, s being the speed-up of a whole step (a third of it forward). Source:
Quartet: Native FP4 Training Can Be Optimal for Large Language Models, arXiv 2505.14669.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from orrery.numerics.laws.coefficients import coefficients

LAW = "quartet"
TOKENS_PER_PARAMETER = 10.0 ** np.linspace(0.0, 6.0, 4001)
"""Amounts of data among which those are looked for at which FP4 wins."""

Floats = NDArray[np.float64]
Value = float | Floats
Width = Literal["fp4", "fp8"]
Share = Literal["parameters", "tokens"]

MIN_SHARE, MAX_SHARE = 0.01, 2.0
"""Between which the effective share of a method is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How much of the parameters and tokens counts with FP4 forward and FP4 backward."""

    parameters_frac: float
    tokens_frac: float

    def __call__(self, choice: "Choice") -> tuple[float, float]:
        """eff_N and eff_D of a choice of widths."""
        c = coefficients(LAW)
        return (
            self.parameters_frac if choice.forward == "fp4" else c["fp8_parameters_frac"],
            self.tokens_frac if choice.backward == "fp4" else c["fp8_tokens_frac"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Width of the products of the forward and of the backward pass."""

    forward: Width
    backward: Width

    def __str__(self) -> str:
        return f"{self.forward} forward, {self.backward} backward"


CHOICES = (
    Choice(forward="fp8", backward="fp8"),
    Choice(forward="fp4", backward="fp8"),
    Choice(forward="fp8", backward="fp4"),
    Choice(forward="fp4", backward="fp4"),
)


def known_method() -> Method:
    """Quartet's own, as its authors fitted it."""
    c = coefficients(LAW)
    return Method(parameters_frac=c["fp4_parameters_frac"], tokens_frac=c["fp4_tokens_frac"])


def loss(parameters: Value, tokens: Value, parameters_frac: float = 1.0, tokens_frac: float = 1.0) -> Value:
    """Nats a token; with both shares 1, of the run in BF16."""
    c = coefficients(LAW)
    model = c["a"] / (parameters * parameters_frac) ** c["alpha"]
    data = c["b"] / (tokens * tokens_frac) ** c["beta"]
    return (model + data) ** c["gamma"] + c["e"]


def speedups(choice: Choice, fp4_ratio: float) -> tuple[float, float]:
    """(forward, whole step) against FP8 both ways, FP4 products being ``fp4_ratio`` times as fast as FP8's."""
    share = coefficients(LAW)["forward_frac"]
    forward = fp4_ratio if choice.forward == "fp4" else 1.0
    backward = fp4_ratio if choice.backward == "fp4" else 1.0
    return forward, 1.0 / (share / forward + (1.0 - share) / backward)


def loss_at_equal_cost(
    choice: Choice, parameters: Value, tokens: Value, fp4_ratio: float, method: Method, *, is_resized: bool
) -> Value:
    """Loss of a choice in the time that FP8 takes for ``parameters`` and ``tokens``.

    ``is_resized``: the model grows until its forward pass costs as much as FP8's, as the paper asks; else it keeps its
    size and sees more tokens.
    """
    forward, step = speedups(choice, fp4_ratio)
    grown = forward if is_resized else 1.0
    return loss(parameters * grown, tokens * step / grown, *method(choice))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One choice in the time that FP8 takes for a model and data."""

    choice: Choice
    num_parameters: float
    num_tokens: float
    fp4_ratio: float
    method: Method
    is_resized: bool

    @property
    def speedups(self) -> tuple[float, float]:
        """Speedups over FP8 of the forward pass and of a whole step."""
        return speedups(self.choice, self.fp4_ratio)

    @property
    def loss(self) -> float:
        """Nats a token."""
        point = (self.num_parameters, self.num_tokens, self.fp4_ratio, self.method)
        return float(loss_at_equal_cost(self.choice, *point, is_resized=self.is_resized))


def best_choice(
    parameters: Value, tokens: Value, fp4_ratio: float, method: Method, *, is_resized: bool
) -> NDArray[np.int64]:
    """Indices into ``CHOICES`` of the least loss, for every pair of a model size and a number of tokens."""
    losses = [
        np.asarray(loss_at_equal_cost(c, parameters, tokens, fp4_ratio, method, is_resized=is_resized)) for c in CHOICES
    ]
    return np.argmin(losses, axis=0).astype(np.int64)


def least_tokens(parameters: float, fp4_ratio: float, method: Method, *, is_resized: bool) -> tuple[float, float]:
    """Between which numbers of tokens FP4 both ways beats FP8 both ways: (nan, nan) where it never does."""
    tokens = parameters * TOKENS_PER_PARAMETER
    eight, four = (
        np.asarray(loss_at_equal_cost(c, parameters, tokens, fp4_ratio, method, is_resized=is_resized))
        for c in (CHOICES[0], CHOICES[-1])
    )
    wins = tokens[four < eight]
    return (float(wins[0]), float(wins[-1])) if wins.size else (float("nan"), float("nan"))


def fitted_frac(runs: Sequence[tuple[float, float, float]], of: Share) -> float:
    """The effective share of a method of your own: least squares in log loss over runs (parameters, tokens, loss)."""
    sizes, data, seen = (np.array(column, dtype=np.float64) for column in zip(*runs, strict=True))

    def error(share: float) -> float:
        fracs = (share, 1.0) if of == "parameters" else (1.0, share)
        return float(np.sum((np.log(seen) - np.log(loss(sizes, data, *fracs))) ** 2))

    return _least(error, MIN_SHARE, MAX_SHARE)


def _least(error: Callable[[float], float], low: float, high: float) -> float:
    """Golden-section search for the least of a function with one valley."""
    golden = (5**0.5 - 1.0) / 2.0
    for _ in range(80):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if error(left) < error(right) else (left, high)
    return (low + high) / 2.0
