"""The textbook tiled product in FP32: blocks of t x t threads, each computing one element of C from shared tiles.

How many blocks are resident on a unit follows CUDA's occupancy rules: threads, warps, blocks, registers, shared memory.
A block repeats k / t steps: load a tile of A and of B, wait for both, multiply. One step of B resident blocks takes

    round = max(B busy, wait + max(busy, chain))        busy = max(instructions / schedulers, shared accesses)

in cycles: either the unit never rests, or a lone block's own waiting is all there is. Tiles in shared memory cut what
the caches are asked for to 1/t. A passes the memory once; B once for every row of blocks that runs together, unless it
stays in the last cache, at the share of the bandwidth that products were measured to reach. No access to shared memory
collides: the threads of a warp read neighbouring words of B, and of A one word a row in unlike banks.

Limits: CUDA programming guide, "technical specifications per compute capability" [cuda-guide]. Latencies: those that
microbenchmarks of Ada and Hopper report [luo-2024], as recalled. Instructions: counted in the kernel's source
[liu-2024-gemm-ada]; what a compiler makes of it was not seen.
"""

from dataclasses import dataclass
from math import ceil

from orrery.base.errors import OutOfRange
from orrery.hardware.device import Device
from orrery.kernels import energy
from orrery.kernels.resolve import find

FORMAT = "fp32"
NUM_BYTES = 4
WARP = 32
LARGEST_TILE = 32  # 1024 threads are the most that a block may have
SECTOR_BYTES = 32  # what the caches move at least

STEP_INSTRUCTIONS = 40  # of a thread in one step beside its products: indices, bounds, 2 loads, 2 stores, 2 barriers
TERM_INSTRUCTIONS = 5  # of one product: 2 shared loads, multiply-add, address, a quarter of the unrolled loop's turn
SHARED_LOADS = 2  # of one product; each takes the unit's shared memory a cycle
STEP_STORES = 2
UNROLLED = 4  # products whose shared loads are in flight together
DEPENDENT = 4  # cycles from one instruction of a warp to the next that needs it
THREAD_REGISTERS = 40
RESERVED_BYTES = 1024  # of shared memory, which every resident block costs beside its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Contents and latencies of one streaming multiprocessor of a generation, in cycles of its clock."""

    num_threads: int
    num_blocks: int
    num_registers: int
    shared_bytes: int
    num_memory_cycles: int  # from a load to its word, from memory
    num_shared_cycles: int  # likewise, from shared memory
    num_schedulers: int = 4  # each starts an instruction of a warp a cycle


UNITS = {
    "ada": Unit(
        num_threads=1536,
        num_blocks=24,
        num_registers=65536,
        shared_bytes=100 * 1024,
        num_memory_cycles=541,
        num_shared_cycles=30,
    ),
    "hopper": Unit(
        num_threads=2048,
        num_blocks=32,
        num_registers=65536,
        shared_bytes=228 * 1024,
        num_memory_cycles=479,
        num_shared_cycles=29,
    ),
}
"""By generation; "ampere" is two compute capabilities with unlike limits, so it has no entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TiledRun:
    """One product with one tile size: what is resident, what moves, and what sets the time."""

    tile: int
    num_resident_blocks: int  # of one unit
    occupancy_frac: float  # of the warps that a unit can hold
    flops: float
    dram_bytes: float
    cache_bytes: float  # asked of the caches, in whole sectors
    time_s: float
    power_w: float  # while it runs
    bound_by: str  # "waiting", "issue", "shared memory" or "memory"


def resident_blocks(tile: int, unit: Unit) -> int:
    """Blocks of tile x tile threads that one unit holds at once."""
    threads = _warps(tile) * WARP
    return min(
        unit.num_blocks,
        unit.num_threads // threads,
        unit.num_registers // (threads * THREAD_REGISTERS),
        unit.shared_bytes // (2 * NUM_BYTES * tile * tile + RESERVED_BYTES),
    )


def tiled_run(m: int, n: int, k: int, tile: int, device: Device) -> TiledRun:
    """A product of m x k and k x n with that tile; OutOfRange beyond the devices and tiles whose limits are known."""
    if (unit := UNITS.get(device.generation)) is None:
        raise OutOfRange(f"tiled product: {device.name} is {device.generation}; known are {', '.join(UNITS)}.")
    if not 1 <= tile <= LARGEST_TILE or min(m, n, k) < 1:
        raise OutOfRange(
            f"tiled product: got tile {tile} for {m} x {n} x {k}; write a tile of 1 to {LARGEST_TILE}, sizes above 0."
        )
    resident = resident_blocks(tile, unit)
    rows, columns, steps = ceil(m / tile), ceil(n / tile), ceil(k / tile)
    together = resident * device.num_compute_units
    cycles, bound_by = _round(tile, resident, unit)
    unit_s = ceil(rows * columns / together) * steps * cycles / device.compute_clock_hz
    dram_bytes = _dram_bytes(m, n, k, rows / max(1.0, together / columns), device)
    reached = find(device, "gemm", FORMAT).constants["bandwidth_frac"]
    memory_s = dram_bytes / (reached * device.memory_bandwidth_bytes_per_s)
    time_s = max(unit_s, memory_s)
    flops = 2.0 * m * n * k
    return TiledRun(
        tile=tile,
        num_resident_blocks=resident,
        occupancy_frac=resident * _warps(tile) * WARP / unit.num_threads,
        flops=flops,
        dram_bytes=dram_bytes,
        cache_bytes=2.0 * rows * columns * steps * tile * ceil(tile * NUM_BYTES / SECTOR_BYTES) * SECTOR_BYTES,
        time_s=time_s,
        power_w=float(energy.power_w(device, FORMAT, flops / time_s, dram_bytes / time_s)),
        bound_by="memory" if memory_s >= unit_s else bound_by,
    )


def _warps(tile: int) -> int:
    """Warps of one block; the last one may be part empty."""
    return ceil(tile * tile / WARP)


def _round(tile: int, resident: int, unit: Unit) -> tuple[float, str]:
    """Cycles in which every resident block takes one step, and what they are spent on."""
    warps = _warps(tile)
    issue = warps * (STEP_INSTRUCTIONS + TERM_INSTRUCTIONS * tile) / unit.num_schedulers
    shared = float(warps * (SHARED_LOADS * tile + STEP_STORES))
    busy = max(issue, shared)
    wait = unit.num_memory_cycles + unit.num_shared_cycles + DEPENDENT * STEP_INSTRUCTIONS
    chain = ceil(tile / UNROLLED) * unit.num_shared_cycles + DEPENDENT * tile
    alone = wait + max(busy, chain)
    if alone >= resident * busy:
        return alone, "waiting"
    return resident * busy, "issue" if issue > shared else "shared memory"


def _dram_bytes(m: int, n: int, k: int, passes: float, device: Device) -> float:
    """A and C once; B in every pass over the rows of blocks, or once where it fits into the last cache."""
    a_bytes, b_bytes, c_bytes = (float(NUM_BYTES * size) for size in (m * k, k * n, m * n))
    return a_bytes + c_bytes + b_bytes * (passes if b_bytes > device.last_level_cache_bytes else 1.0)
