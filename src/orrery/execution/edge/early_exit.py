"""Networks that answer easy inputs early: the expected cost of one input, against a pipeline that is the same for all.

    expected = trunk + branch + (1 - easy) x rest

A pipeline that first turns every input into an easy one pays for the conversion and the small network each time. Each
layer costs its call beside its arithmetic. Teerapittayanon et al., BranchyNet (arXiv 1709.01686); Mahmud et al., CBNet
(arXiv 2403.07036).
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """A device as small layers meet it."""

    flops_per_s: float
    call_s: float  # of one layer, beside its arithmetic


def run_s(layer_flops: Sequence[float], runtime: Runtime) -> float:
    """Layers one after the other."""
    return len(layer_flops) * runtime.call_s + sum(layer_flops) / runtime.flops_per_s


def exiting_s(early: Sequence[float], rest: Sequence[float], easy_frac: float, runtime: Runtime) -> float:
    """Expected: trunk and branch always, the rest for inputs that the branch does not answer; the test is a call."""
    return run_s(early, runtime) + runtime.call_s + (1.0 - easy_frac) * run_s(rest, runtime)
