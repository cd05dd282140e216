"""Operators of `orrery kernel`: sizes, and the ways in which a device can compute each."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from orrery.base.cost import Spread
from orrery.base.errors import ScenarioError
from orrery.hardware.device import Device
from orrery.kernels.ops import Op

Size = int | float

NOT_MEASURED = "no interval: nothing was measured of this variant"
"""Said beside answers of mechanisms that no table was held against."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One way at one size. ``roofs_s`` are least times that no kernel can beat; the largest of them and of
    ``others_s`` (launches, waiting) is what binds."""

    time_s: float
    flops: float
    bytes: float
    roofs_s: Mapping[str, float]
    others_s: Mapping[str, float] = field(default_factory=dict[str, float])
    spread: Spread | None = None
    engine: str = ""
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    because: tuple[str, ...] = ()
    op: Op | None = None  # what a library can be asked to do

    @property
    def bound_by(self) -> str:
        """The longest part."""
        terms = {**self.roofs_s, **self.others_s}
        return max(terms, key=terms.__getitem__) if terms else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A variant, in a format, by a maker's kernels: what it is called, and how to find its time."""

    variant: str
    format: str
    find: Callable[[], Found]
    engine: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One point of the question on one device."""

    device: Device
    sizes: Mapping[str, Size]
    words: Mapping[str, Any]  # settings that are no sizes; absent where nothing was said

    def size(self, name: str) -> int:
        """A whole-number size."""
        return int(self.sizes[name])

    def number(self, name: str, default: float) -> float:
        """A setting, or what is taken where nothing was said."""
        return float(self.words.get(name, default))

    def word(self, name: str, default: str) -> str:
        """A setting, or what is taken where nothing was said."""
        return str(self.words.get(name, default))

    def has(self, name: str) -> bool:
        """Whether something was said."""
        return name in self.words

    def list_of(self, name: str, default: Iterable[str]) -> tuple[str, ...]:
        """A setting of several words with commas."""
        text = self.words.get(name)
        return tuple(default) if text is None else listed(str(text))


def listed(text: str) -> tuple[str, ...]:
    """Words between commas, each once."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """An operator by name: the sizes that it has (None: must be said), the settings that it reads, its variants."""

    name: str
    sizes: Mapping[str, Size | None]
    ways: Callable[[Work], Iterator[Way]]
    settings: frozenset[str] = frozenset()
    variants: Mapping[str, str] = field(default_factory=dict[str, str])  # name -> what it does
    spellings: Mapping[str, str] = field(default_factory=dict[str, str])  # other names of variants
    notes: Callable[[Work], Iterable[str]] = lambda _: ()
    check: Callable[[Work], None] = lambda _: None


def one_of(name: str, text: str, known: Iterable[str]) -> str:
    """A word out of a few; ScenarioError says which there are."""
    known = tuple(known)
    if text in known:
        return text
    raise ScenarioError(f"{name}: got {text!r}; write one of {', '.join(known)}.")
