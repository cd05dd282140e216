"""A chain of tasks on a device that lays tasks out in space: run in turn, streamed through, or in groups.

In turn, every task has the whole device, and what passes between two tasks goes off chip where the buffer is too small.
Streamed, all tasks of a group stand side by side and share the device by their work; only what enters and leaves the
group crosses the memory. A task that needs all of its input before its first output (a softmax's divisor, keys and
values) breaks the stream: what stands before it and behind it works in turn, each on its own share of the device.

    in turn     sum of max(operations / peak, bytes / bandwidth) + start
    streamed    max(breaks * operations / peak, bytes / bandwidth) * (1 + (tasks - 1) / pieces) + start
    switched    the cheapest cut of the chain into streamed groups that run in turn, fixed before the run

SN40L, arXiv 2405.07518 (streamed decoder layers); InTAR, arXiv 2502.08807 (switched).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.base.errors import OutOfRange

PIECES = 64
"""Pieces that a streamed tensor is cut into: how long a stream takes to fill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One operation: its work, its own operands from memory, and what it takes from the task before and hands on."""

    name: str
    flops: float
    weight_bytes: float = 0.0  # weights, or a cache: read from memory however the task runs
    input_bytes: float = 0.0
    output_bytes: float = 0.0
    needs_all: bool = False  # no output before the last of its input


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A spatial device: roofs, room for tensors between tasks, and the time to start a kernel or turn a switch."""

    flops_per_s: float
    memory_bytes_per_s: float
    buffer_bytes: float
    start_s: float = 0.0

    def __post_init__(self) -> None:
        if not (self.flops_per_s > 0 and self.memory_bytes_per_s > 0 and self.buffer_bytes >= 0 and self.start_s >= 0):
            raise OutOfRange(f"{self}; write rates above 0 and a buffer and a start of 0 or more.")


def in_turn_s(tasks: Sequence[Task], machine: Machine) -> float:
    """Every task on the whole device."""
    last = len(tasks) - 1
    return sum(
        group_s(tasks[i : i + 1], machine, is_first=i == 0, is_last=i == last, pieces=PIECES) for i in range(last + 1)
    )


def streamed_s(tasks: Sequence[Task], machine: Machine, pieces: int = PIECES) -> float:
    """All tasks side by side."""
    return group_s(tasks, machine, is_first=True, is_last=True, pieces=pieces)


def switched_s(tasks: Sequence[Task], machine: Machine, pieces: int = PIECES) -> tuple[float, tuple[int, ...]]:
    """The cheapest cut into streamed groups, and how many tasks each group has."""
    count = len(tasks)
    best: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    for end in range(1, count + 1):
        best.append(
            min(
                (
                    best[begin][0]
                    + group_s(tasks[begin:end], machine, is_first=begin == 0, is_last=end == count, pieces=pieces),
                    (*best[begin][1], end - begin),
                )
                for begin in range(end)
            )
        )
    return best[count]


def group_s(group: Sequence[Task], machine: Machine, *, is_first: bool, is_last: bool, pieces: int) -> float:
    """One group, streamed; its ends pass through the memory where they are the chain's or do not fit on chip."""
    flops, num_breaks = sum(task.flops for task in group), sum(task.needs_all for task in group[1:])
    moved = moved_bytes(group, machine, is_first=is_first, is_last=is_last)
    steady = max((1 + num_breaks) * flops / machine.flops_per_s, moved / machine.memory_bytes_per_s)
    return machine.start_s + steady * (1.0 + (len(group) - 1) / pieces)


def moved_bytes(group: Sequence[Task], machine: Machine, *, is_first: bool, is_last: bool) -> float:
    """Bytes that a group moves off chip: weights, its ends, and twice the waiting tensors that do not fit."""
    waiting = [task.input_bytes for task in group[1:] if task.needs_all]
    return (
        sum(task.weight_bytes for task in group)
        + crossing_bytes(group[0].input_bytes, machine, is_end=is_first)
        + crossing_bytes(group[-1].output_bytes, machine, is_end=is_last)
        + sum(2.0 * crossing_bytes(tensor_bytes, machine, is_end=False) for tensor_bytes in waiting)
    )


def crossing_bytes(tensor_bytes: float, machine: Machine, *, is_end: bool) -> float:
    """Bytes of a tensor that go off chip: all of it at the chain's ends or where it does not fit."""
    return tensor_bytes if is_end or tensor_bytes > machine.buffer_bytes else 0.0


def stalls(tasks: Sequence[Task], groups: Sequence[int]) -> int:
    """Tasks that hold their streamed group up until all of their input is there."""
    ends = [sum(groups[: i + 1]) for i in range(len(groups))]
    return sum(task.needs_all for size, end in zip(groups, ends, strict=True) for task in tasks[end - size + 1 : end])


def spilled_bytes(tasks: Sequence[Task], groups: Sequence[int], machine: Machine) -> float:
    """Bytes of tensors between tasks that go off chip and come back."""
    own_bytes = sum(task.weight_bytes for task in tasks) + tasks[0].input_bytes + tasks[-1].output_bytes
    return traffic_bytes(tasks, groups, machine) - own_bytes


def traffic_bytes(tasks: Sequence[Task], groups: Sequence[int], machine: Machine) -> float:
    """Bytes over the memory's interface when the chain runs in groups of so many tasks."""
    if sum(groups) != len(tasks):
        raise OutOfRange(f"groups {tuple(groups)} hold {sum(groups)} tasks; the chain has {len(tasks)}.")
    moved, begin = 0.0, 0
    for size in groups:
        end = begin + size
        moved += moved_bytes(tasks[begin:end], machine, is_first=begin == 0, is_last=end == len(tasks))
        begin = end
    return moved
