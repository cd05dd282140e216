"""Early exits: classifiers behind units, each of which answers a share of the inputs that come to it.

    reach[i] = product over exits before unit i of (1 - easy_frac)
    head of the first i units = sum over u < i of reach[u] x unit_s[u] + sum over exits e behind them of
                                reach[e] x branch_s[e]

An exit's classifier runs for all that come to it, so it pays where it answers enough of them. Teerapittayanon et al.,
BranchyNet (arXiv 1709.01686).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """A classifier behind the unit of an index."""

    index: int
    easy_frac: float  # of the inputs that come to it, answered there


def reach(num_units: int, exits: Sequence[Exit]) -> list[float]:
    """Share of inputs that come to each unit, and (last) that leave the last one."""
    stays = {one.index: 1.0 - one.easy_frac for one in exits}
    found = [1.0]
    for i in range(num_units):
        found.append(found[-1] * stays.get(i, 1.0))
    return found


def expected_s(unit_s: Sequence[float], branch_s: Mapping[int, float], reached: Sequence[float]) -> list[float]:
    """Expected seconds of the first i units and their exits for one input, i = 0 … all."""
    found = [0.0]
    for i, (time_s, share) in enumerate(zip(unit_s, reached, strict=False)):
        found.append(found[-1] + share * (time_s + branch_s.get(i, 0.0)))
    return found
