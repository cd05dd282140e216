"""Limits of a design: devices, dollars an hour, and watts; how many replicas fit, and the share of one.

Watts are rated ones: the most that a device may draw at its clock, and what the machine around it draws. A site must be
able to carry them, whatever is drawn in the mean.
"""

from dataclasses import dataclass, replace
from math import inf

from orrery.planner.space import Option

ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """Part of a budget that some devices take."""

    num_devices: int
    usd_per_hour: float | None  # None: no price is known
    power_w: float

    def times(self, count: int) -> "Weight":
        """Weight of ``count`` such groups."""
        usd = None if self.usd_per_hour is None else self.usd_per_hour * count
        return Weight(num_devices=self.num_devices * count, usd_per_hour=usd, power_w=self.power_w * count)

    def __add__(self, other: "Weight") -> "Weight":
        """Both together; a price that is not known stays so."""
        prices = (self.usd_per_hour, other.usd_per_hour)
        return Weight(
            num_devices=self.num_devices + other.num_devices,
            usd_per_hour=None if None in prices else sum(p or 0.0 for p in prices),
            power_w=self.power_w + other.power_w,
        )


def weight_of(option: Option, num_devices: int) -> Weight:
    """Devices of one kind, with their parts of machines."""
    device, usd = option.device, option.tariff.usd_per_hour
    return Weight(
        num_devices=num_devices,
        usd_per_hour=None if usd is None else usd * num_devices,
        power_w=num_devices * (device.power_limit_w + device.host_power_w),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most of each; infinite where it does not matter."""

    max_devices: int
    max_usd_per_hour: float = inf
    max_power_w: float = inf

    @property
    def is_by_devices(self) -> bool:
        """Whether devices alone are counted."""
        return self.max_usd_per_hour == inf and self.max_power_w == inf

    def most(self, weight: Weight) -> int:
        """Number of ``weight`` that fit; none where a price is needed and not known."""
        room = self.max_devices // weight.num_devices
        if self.max_usd_per_hour < inf:
            room = min(room, _times(self.max_usd_per_hour, weight.usd_per_hour))
        if self.max_power_w < inf:
            room = min(room, _times(self.max_power_w, weight.power_w))
        return max(room, 0)

    def less(self, used: Weight) -> "Budget":
        """Rest beside ``used``."""
        return replace(
            self,
            max_devices=self.max_devices - used.num_devices,
            max_usd_per_hour=self.max_usd_per_hour - (used.usd_per_hour or 0.0),
            max_power_w=self.max_power_w - used.power_w,
        )

    def share(self, used: Weight) -> float:
        """The part of the budget that is scarcest for ``used``."""
        shares = [used.num_devices / self.max_devices, used.power_w / self.max_power_w]
        return max(*shares, (used.usd_per_hour or 0.0) / self.max_usd_per_hour)


def _times(limit: float, each: float | None) -> int:
    if each is None:
        return 0
    return int(limit / each + ROUNDING) if each > 0.0 else int(1e9)
