"""Products in the memory beside small cores: unrolled tiles of u x v results, ``lanes`` products an instruction.

One step of a tile loads u + v words and starts u v multiply-adds of ``lanes`` products each, so cycles of a step are

    max((u + v) load + u v,  u v cores / float units)

Rows or columns of results are dealt out to the cores, whichever leaves the fullest core less; a tile keeps its results
and operands in registers. The unrolling that takes least is used, as an autotuner would. Depthwise products have no
results that share an operand: one multiply-add takes two loads. Nadalini et al. (arXiv 2305.19167).
"""

from dataclasses import dataclass
from math import ceil

from orrery.kernels.cluster.cores import Cores

UNROLLS = (1, 2, 4)
TILE_INSTRUCTIONS = 8.0
"""Instructions of a tile beside its steps: addresses of both operands and the results, and their clearing."""

LOOP_INSTRUCTIONS = 2.0
"""Instructions per product of a loop that hardware does not run: an address and a compare with its branch."""

COPY_INSTRUCTIONS = 2.0
"""Instructions per word that is put in another place: load and store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """m x n results of k products each."""

    m: int
    n: int
    k: int

    @property
    def num_macs(self) -> int:
        """Multiply-adds."""
        return self.m * self.n * self.k


def cycles(product: Product, cores: Cores, lanes: int) -> float:
    """The best unrolling, rows or columns dealt out."""
    return min(
        _tiled(rows, columns, product.k, u, v, cores, lanes)
        for rows, columns in (
            (ceil(product.m / cores.num_cores), product.n),
            (product.m, ceil(product.n / cores.num_cores)),
        )
        for u in UNROLLS
        for v in UNROLLS
        if u * v + u + v <= cores.num_registers
    )


def _tiled(rows: int, columns: int, k: int, u: int, v: int, cores: Cores, lanes: int) -> float:
    """Cycles of the fullest core: whole tiles, and what is left over one result at a time."""
    tiles = (rows // u) * (columns // v)
    left = rows * columns - tiles * u * v
    return tiles * _tile(k, u, v, cores, lanes) + left * _tile(k, 1, 1, cores, lanes)


def _tile(k: int, u: int, v: int, cores: Cores, lanes: int) -> float:
    loads = (u + v) * cores.num_load_cycles * cores.conflict_ratio
    step = max(loads + u * v, u * v * cores.float_ratio)
    return ceil(k / lanes) * step + u * v + TILE_INSTRUCTIONS


def depthwise_cycles(num_results: int, taps: int, cores: Cores) -> float:
    """Every result by itself: two loads, a multiply-add and the loop for each tap; lanes find nothing side by side."""
    loads = 2.0 * cores.num_load_cycles * cores.conflict_ratio
    tap = max(loads + 1.0 + LOOP_INSTRUCTIONS, cores.float_ratio)
    return ceil(num_results / cores.num_cores) * (taps * tap + 1.0 + TILE_INSTRUCTIONS)


def copy_cycles(num_elements: float, cores: Cores) -> float:
    """Numbers put in another order, one by one."""
    return num_elements / cores.num_cores * (COPY_INSTRUCTIONS - 1.0 + cores.num_load_cycles) * cores.conflict_ratio
