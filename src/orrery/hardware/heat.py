"""Devices without a fan: how long they run at full speed, what they keep up, and what a battery gives.

The case warms towards a temperature that is proportional to the power drawn, with one time constant; at the warmth of
``sustained_w`` the device throttles to that power. From the warmth of idling,

    throttles after = tau ln((P - P_idle) / (P - P_sustained))          for P > P_sustained, else never
"""

from dataclasses import dataclass
from math import inf, log


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """Power limits, thermal mass and battery of a device; a battery of 0 J is none."""

    idle_w: float
    sustained_w: float  # kept up for ever
    time_constant_s: float
    battery_j: float = 0.0

    def throttles_after_s(self, power_w: float) -> float:
        """Seconds from idle until the power must fall; inf where it never must."""
        if power_w <= self.sustained_w:
            return inf
        return self.time_constant_s * log((power_w - self.idle_w) / (power_w - self.sustained_w))

    def lasts_s(self, first_w: float, later_w: float) -> float:
        """Seconds that the battery gives at ``first_w`` until the device throttles, and at ``later_w`` from then on."""
        full_s = self.battery_j / first_w
        cool_s = self.throttles_after_s(first_w)
        return full_s if full_s <= cool_s else cool_s + (self.battery_j - first_w * cool_s) / later_w
