"""Which kernels an engine runs by default: dated rules that it carries, from the most special to the most general."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from orrery.base.sources import Fact

Kind = Literal["moe", "attention", "gemm"]
KINDS: tuple[Kind, ...] = ("moe", "attention", "gemm")

ENDLESS = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Inputs of an engine's choice of kernel."""

    generation: str
    format: str  # of the stored weights; of the cache, for attention
    mixer: str = ""  # "softmax", "sinks", "latent", "sparse-latent"
    mode: str = ""  # the kind of traffic that it is set up for
    degrees: Mapping[str, int] = field(default_factory=dict[str, int])  # tp, dp, ep


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BackendRule:
    """One line of what an engine runs; empty conditions accept everything."""

    kind: Kind
    backend: str
    fact: Fact
    generations: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    mixers: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    spans: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])  # of degrees
    tokens: tuple[float, float] = (0.0, ENDLESS)  # of a step on one rank, where the kernel is chosen by them
    activations: str = ""  # what the kernel multiplies the weights with, where the engine decides it
    tuned_by: str = ""  # the engine whose timings show the kernel as a server runs it, where this one's do not

    def accepts(self, at: Situation) -> bool:
        """Whether the rule holds there for some number of tokens."""
        words = (
            (self.generations, at.generation),
            (self.formats, at.format),
            (self.mixers, at.mixer),
            (self.modes, at.mode),
        )
        return all(not known or word in known for known, word in words) and all(
            low <= at.degrees.get(degree, 1) <= high for degree, (low, high) in self.spans.items()
        )
