"""Data shared by the devices that denoise one picture in patches, and the time of its exchange."""

from dataclasses import dataclass

from orrery.hardware.device import Device
from orrery.network.collective import Collective
from orrery.network.rule import predict


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """One patch in one pass, all layers: keys and values, and the border rows that neighbours' convolutions read."""

    device: Device
    num_devices: int
    cache_bytes: float
    border_bytes: float
    num_attentions: int
    num_convolutions: int

    def gathering_s(self, patch_bytes: float, num_calls: int) -> float:
        """Until every device has that many bytes of every patch, in so many calls."""
        if not patch_bytes:
            return 0.0
        return num_calls * self._call_s("all_gather", self.num_devices * patch_bytes / num_calls)

    def sending_s(self, patch_bytes: float, num_calls: int) -> float:
        """Until the neighbours on both sides have that many bytes of a patch, in so many calls."""
        return num_calls * self._call_s("send_recv", 2.0 * patch_bytes / num_calls)

    def _call_s(self, kind: str, message_bytes: float) -> float:
        work = Collective(kind=kind, num_devices=self.num_devices, message_bytes=message_bytes)
        return float(predict(work, self.device).time_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchanged:
    """Tensors read and received in one later pass."""

    read_ratio: float  # what attention reads over a patch: its own is 1
    kept_ratio: float  # keys and values that a device holds, over those of a patch
    exchange_s: float
    num_calls: int
    received_bytes: float  # by a device, on average
