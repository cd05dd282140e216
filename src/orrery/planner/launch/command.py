"""A launch command as it is put together: flags with values, a line each, and notes on what a flag cannot say."""

import shlex
from dataclasses import dataclass, field

from orrery.execution.layout import Deployment
from orrery.execution.memory import Memory, memory_of
from orrery.numerics.registry import get_format

STEP_TOKENS = 1024
"""Context limits are rounded to this many tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """The command, the flags in it, the configuration keys beside it, and what to know."""

    text: str
    flags: tuple[str, ...]
    config_keys: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Draft:
    """A command being written."""

    program: str
    arguments: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    notes: list[str] = field(default_factory=list[str])

    def add(self, flag: str, value: object = "") -> None:
        """Append a flag; one that this version does not know (``""``) is left out."""
        if flag:
            self.arguments.append((flag, str(value)))

    def above_one(self, flag: str, value: int) -> None:
        """Append a degree; 1 is every engine's default."""
        if value > 1:
            self.add(flag, value)

    def text(self) -> str:
        """Ready to paste into a shell."""
        lines = [self.program, *(f"  {f} {shlex.quote(v)}" if v else f"  {f}" for f, v in self.arguments)]
        return " \\\n".join(lines)

    def flags(self) -> tuple[str, ...]:
        """Flags used."""
        return tuple(f for f, _ in self.arguments)


def context_tokens(deployment: Deployment, longest_tokens: float) -> int:
    """The longest sequence to let in: the user's, else the longest request, else what surely fits in the cache."""
    if deployment.max_model_tokens:
        return deployment.max_model_tokens
    model = deployment.model.max_context_tokens or 0
    memory = memory_of(deployment)
    room = memory.kv_capacity_tokens if isinstance(memory, Memory) else 0.0
    if longest_tokens:
        longest = -(-int(longest_tokens) // STEP_TOKENS) * STEP_TOKENS
        room = min(room, float(longest))
    known = min(room, float(model)) if model else room
    return int(known) if 0 < known < float("inf") else 0


def needs_checkpoint(deployment: Deployment) -> bool:
    """Whether the weights must come quantised: not the checkpoint's format, and no engine makes it on loading."""
    formats, own = deployment.formats, deployment.model.weights_format
    return formats.weights != own and not can_quantise_on_load(deployment)


def can_quantise_on_load(deployment: Deployment) -> bool:
    """vLLM and SGLang make FP8 weights of a 16-bit checkpoint while loading it."""
    own = get_format(deployment.model.weights_format)
    return deployment.formats.weights == "fp8" and own.element_bits >= 16
