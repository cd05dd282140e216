"""A step's batch, and the costs of its parts. Everything is an array with one entry a step."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.execution.engine import Engine
from orrery.hardware.calibration import Calibration
from orrery.kernels.ops import Timing

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """A step's batch on each attention rank; arrays of one shape, one entry a step.

    ``prompt_tokens`` are the new tokens of each of ``prompt_sequences``, ending at ``prompt_context_tokens``;
    each of ``decode_sequences`` adds one token to ``decode_context_tokens`` (the new one included).
    """

    prompt_sequences: Ints
    prompt_tokens: Ints
    prompt_context_tokens: Ints
    decode_sequences: Ints
    decode_context_tokens: Ints
    guesses: int = 0  # that each of ``decode_sequences`` has checked beside its token

    @property
    def num_tokens(self) -> Ints:
        """Tokens that pass through the linear layers."""
        return self.prompt_sequences * self.prompt_tokens + self.decode_sequences * (1 + self.guesses)

    def largest(self) -> dict[str, float]:
        """The largest sizes of any entry: tokens, sampled rows, and what prompts and decodes ask of attention."""
        return {
            "tokens": float(self.num_tokens.max()),
            "rows": float(self.num_rows.max()),
            "prompts": float(self.prompt_sequences.max()),
            "prompt_tokens": float(self.prompt_tokens.max()),
            "prompt_context": float(self.prompt_context_tokens.max()),
            "decodes": float(self.decode_sequences.max()),
            "decode_context": float(self.decode_context_tokens.max()),
        }

    @property
    def num_rows(self) -> Ints:
        """Tokens that are sampled: all decodes', every guess's, and every finished prompt's."""
        return self.prompt_sequences + self.decode_sequences * (1 + self.guesses)


def decodes_of(sequences: Ints, context_tokens: int) -> Batch:
    """Steps that only decode: so many sequences each, all behind the same context."""
    none = np.zeros_like(sequences)
    return Batch(
        prompt_sequences=none,
        prompt_tokens=none,
        prompt_context_tokens=none,
        decode_sequences=sequences,
        decode_context_tokens=np.full_like(sequences, context_tokens),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """One kind of kernel, collective or gap in a step; ``time_s`` is of all its ``count`` repetitions together."""

    name: str
    group: str  # block it belongs to, "network", "head", "gaps"
    time_s: Floats
    op: str  # which rule answered
    format: str = ""  # of the arithmetic; empty for what is no kernel
    once: Timing | None = None  # one repetition of a kernel: its roofs, operations and bytes
    count: float = 1.0
    calibration: Calibration | None = None  # whose constants answered
    sizes: Mapping[str, float] = field(default_factory=dict[str, float])  # the largest that were asked, by name
    is_launched: bool = True  # False where the launch is counted in the engine's gaps

    def roofs_s(self, entry: int) -> tuple[float, float, float]:
        """Compute roof, memory roof and launch of one entry of the batch, over all repetitions."""
        if self.once is None:
            return 0.0, 0.0, 0.0
        launch_s = float(self.once.overhead_s[entry]) if self.is_launched else 0.0
        compute_s, memory_s = float(self.once.compute_s[entry]), float(self.once.memory_s[entry])
        return self.count * compute_s, self.count * memory_s, self.count * launch_s

    def outside(self) -> str:
        """Inputs beyond the sizes that the constants were measured on; empty where there are none."""
        if self.calibration is not None:
            for name, (low, high) in self.calibration.range.items():
                size = self.sizes.get(name)
                if size is not None and not low <= size <= high:
                    return f"{name} {size:g}, measured {low:g} to {high:g}"
        return ""

    def work(self, entry: int) -> tuple[float, float]:
        """Operations and bytes of one entry of the batch, over all repetitions."""
        if self.once is None:
            return 0.0, 0.0
        return self.count * float(self.once.flops[entry]), self.count * float(self.once.bytes[entry])


def part(
    name: str,
    group: str,
    timing: Timing,
    count: float,
    op: str,
    format: str,
    calibration: Calibration | None = None,
    sizes: Mapping[str, float] | None = None,
) -> Part:
    """``count`` repetitions of a timed op."""
    return Part(
        name=name,
        group=group,
        time_s=timing.time_s * count,
        op=op,
        format=format,
        once=timing,
        count=count,
        calibration=calibration,
        sizes=sizes or {},
    )


def memory_ratio_of(p: Part, engine: Engine) -> float:
    """How much longer the engine's kernels take for a byte than a part's constants say. What is said of a generation on
    which nobody measured an engine says nothing of those kernels that somebody did measure there.
    """
    is_measured = p.calibration is not None and p.calibration.origin != "any"
    return 1.0 if is_measured and not engine.scales_measured else engine.memory_ratio


def slower(p: Part, engine: Engine) -> Part:
    """The same kernels where they take longer for a byte or for an operation; the roofs stay where they are."""
    if p.once is None:
        return p
    return Part(  # dataclasses.replace takes three times as long, and this is asked for every part of every step
        name=p.name,
        group=p.group,
        time_s=p.time_s
        * np.where(p.once.compute_s > p.once.memory_s, engine.compute_ratio, memory_ratio_of(p, engine)),
        op=p.op,
        format=p.format,
        once=p.once,
        count=p.count,
        calibration=p.calibration,
        sizes=p.sizes,
        is_launched=p.is_launched,
    )
