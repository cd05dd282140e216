"""How long networks take on a machine whose host launches one kernel after another.

A kernel starts once it has been launched and the one before has ended; launches run ahead of the device. So a block of
kernels with launches h_i and times t_i takes a state (host, end) to

    host' = host + H,   end' = max(end + T, host + M),   H = sum h,  T = sum t,  M = max_i (h_1 + … + h_i + t_i + … )

and a network is its blocks one after the other. Short kernels hide behind launches and launches behind long kernels,
so what an operation costs depends on its neighbours.
"""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from orrery.hardware.device import Device
from orrery.kernels.dispatch import predict
from orrery.kernels.ops import Elementwise, Gemm
from orrery.predictors.cells.kernels import Block, Kernel
from orrery.predictors.cells.space import Cells, Chosen, Space

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FORMAT = "fp32"
PASS_KIND, PASS_BYTES = "add", 6.0
"""Passes go at the pace of the rule for additions, which moves six bytes an element."""

PRODUCT, DEPTHWISE, PASS, LAUNCH = range(4)
NUM_CLASSES = 4
"""Classes of work that differ in how well a library does them; with launches, which are the host's."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """A space at one batch: its blocks, each once, their kernels in line, and its route as places among the blocks."""

    space: Space
    batch: int  # images at once
    kernels: tuple[Kernel, ...]
    classes: Ints  # of every kernel
    sizes: Ints  # kernels of every block
    flops: Floats  # of every block
    steps: tuple[tuple[int, Ints], ...]  # (choice, block of each alternative); choice -1 where there is one only

    def walk(self, cells: Cells) -> list[Ints]:
        """The block of every network, or the one of all of them, at every step."""
        return [blocks if choice < 0 else blocks[cells[:, choice]] for choice, blocks in self.steps]

    def total(self, each: Floats, cells: Cells) -> Floats:
        """The sum over every network's blocks of something that blocks have."""
        return np.sum([np.broadcast_to(each[block], len(cells)) for block in self.walk(cells)], axis=0)

    def by_column(self, each: Floats) -> tuple[float, Floats]:
        """The same sum as a constant and a weight for every column of an encoded line."""
        constant, weights = 0.0, np.zeros(self.space.num_columns)
        columns = self.space.first_column
        for choice, blocks in self.steps:
            if choice < 0:
                constant += float(each[blocks].sum())
            elif columns.index(columns[choice]) == choice:  # another choice of the same columns weighs the same
                weights[columns[choice] : columns[choice] + blocks.size] += each[blocks]
        return constant, weights


@cache
def plan(space: Space, batch: int) -> Plan:
    """Building blocks of a space's networks, for so many images at once."""
    known: dict[Block, int] = {}
    steps: list[tuple[int, Ints]] = []
    for step in space.route(batch):
        choice, blocks = (step.choice, step.blocks) if isinstance(step, Chosen) else (-1, (step,))
        steps.append((choice, np.array([known.setdefault(block, len(known)) for block in blocks])))
    kernels = tuple(kernel for block in known for kernel in block)
    return Plan(
        space=space,
        batch=batch,
        kernels=kernels,
        sizes=np.array([len(block) for block in known]),
        classes=np.array([PRODUCT if k.m else DEPTHWISE if k.flops else PASS for k in kernels]),
        flops=np.array([sum(kernel.flops for kernel in block) for block in known]),
        steps=tuple(steps),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Machine:
    """A device and its host, as the kernels of a plan meet them."""

    plan: Plan
    kernel_s: Floats
    launch_s: float  # of one kernel

    def scaled(self, ratios: Floats) -> "Machine":
        """The same where every class of work takes so many times as long."""
        return replace(
            self, kernel_s=self.kernel_s * ratios[self.plan.classes], launch_s=self.launch_s * ratios[LAUNCH]
        )

    def blocks(self) -> tuple[Floats, Floats, Floats]:
        """H, T and M of every block."""
        launch = self.plan.sizes.astype(np.float64) * self.launch_s
        busy, makespan = np.zeros(launch.size), np.zeros(launch.size)
        first = 0
        for i, size in enumerate(map(int, self.plan.sizes)):
            left = np.cumsum(self.kernel_s[first : first + size][::-1])[::-1]
            if size:
                busy[i], makespan[i] = left[0], np.max(left + self.launch_s * np.arange(1, size + 1))
            first += size
        return launch, busy, makespan

    def latency_s(self, cells: Cells) -> Floats:
        """Latency (s) of every network, from its first launch to the end of its last kernel."""
        launch, busy, makespan = self.blocks()
        host, end = np.zeros((2, len(cells)))
        for block in self.plan.walk(cells):
            end = np.maximum(end + busy[block], host + makespan[block])
            host = host + launch[block]
        return end

    def alone_s(self) -> Floats:
        """Time (s) of every block when it alone is repeated: its launches or its kernels, whichever take longer."""
        launch, busy, _ = self.blocks()
        return np.maximum(launch, busy)


def machine(device: Device, space: Space, batch: int, launch_s: float) -> Machine:
    """The kernel rules' view of a device; ``launch_s`` is the host's time for each kernel."""
    known = plan(space, batch)
    is_product = known.classes == PRODUCT
    m, n, k = np.array([(kernel.m, kernel.n, kernel.k) for kernel in known.kernels])[is_product].T
    moved = np.array([kernel.moved_bytes for kernel in known.kernels])[~is_product]
    times = np.empty(len(known.kernels))
    times[is_product] = predict(Gemm(m=m, n=n, k=k, format=FORMAT, quantises_input=False), device).time_s
    elements = np.rint(moved / PASS_BYTES).astype(np.int64)
    times[~is_product] = predict(Elementwise(kind=PASS_KIND, tokens=elements, width=1), device).time_s
    return Machine(plan=known, kernel_s=times, launch_s=launch_s)
