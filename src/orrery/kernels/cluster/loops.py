"""Loops of classic learning on a cluster: so many floating-point and other instructions an element, dealt to the cores.

    cycles = other + float x cycles of one,   one core
    cycles = ceil(elements / cores) x that + serial + barrier,   all cores

The serial part is what one core does after the others: merging their answers. Native operations wait for the shared
units; emulated ones are calls. Loops are counted by hand from the algorithms' inner statements.
"""

from dataclasses import dataclass
from math import ceil

from orrery.kernels.cluster.cores import Cores


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """One algorithm on one input."""

    name: str
    num_elements: int  # turns of the inner loop
    num_floats: float  # operations of a turn
    num_others: float  # instructions of a turn beside them: loads, addresses, compares
    num_serial: int = 0  # turns that one core does after the others, for each core's answer


def loop_cycles(loop: Loop, cores: Cores, float_cycles: float) -> float:
    """On all cores of the cluster; ``float_cycles`` of one operation, which native units may lengthen by sharing."""
    turn = loop.num_floats * max(float_cycles, cores.float_ratio) + loop.num_others * cores.conflict_ratio
    serial = loop.num_serial * cores.num_cores * turn if cores.num_cores > 1 else 0.0
    met = cores.num_barrier_cycles if cores.num_cores > 1 else 0.0
    return ceil(loop.num_elements / cores.num_cores) * turn + serial + met
