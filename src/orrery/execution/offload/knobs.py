"""Properties that an offloading technique declares beside its step."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadKnobs:
    """The knobs of a technique of offloading, and what holds of it whatever they are."""

    trains: ClassVar[str] = "all weights"
    """Or "adapters" of low rank."""

    shares_states: ClassVar[bool] = False
    """Data-parallel ranks share one copy of the states; else each has its own."""

    num_forward: ClassVar[float] = 1.0
    """Forward passes of a step, without recomputation."""

    has_backward: ClassVar[bool] = True
    """Whether a step goes back through the layers; without it nothing is kept but weights."""

    fetches_from: ClassVar[str] = "device"
    """Where parameters of layers lie when a pass begins: device, host or nvme."""

    always_recomputes: ClassVar[str] = ""
    """Fixed recomputation; blank where its knob ``recomputes`` chooses."""

    recompute: ClassVar[str] = "none"
    """The same as a layout's recompute setting: full or none."""

    rung: ClassVar[int] = 0
    """Place among those that learn as training on the device does, by what they move off it; 0: not among them."""
