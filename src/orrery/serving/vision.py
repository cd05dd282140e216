"""A server of images: unpacking and resizing on the host's cores or on the device, a copy, and a network.

A lone request passes the stages one after the other. Many keep all stages busy at once, and the one that takes longest
for an image, over all that work on it, sets the pace; stages on the device share it. [abouelhamayed-2024]
"""

from dataclasses import dataclass

from orrery.base.errors import ScenarioError


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageServer:
    """Rates of the stages, and what one image is."""

    packed_bytes: float  # the image as it comes
    unpacked_bytes: float
    network_s: float  # one image alone through the network
    network_batched_s: float  # one of a full batch
    core_bytes_per_s: float  # unpacked, resized and normalised by one of the host's cores
    num_cores: int
    device_bytes_per_s: float  # the same by the device
    link_bytes_per_s: float
    link_latency_s: float
    input_bytes: float  # what the network takes in

    def __post_init__(self) -> None:
        if min(self.unpacked_bytes, self.core_bytes_per_s, self.device_bytes_per_s, self.link_bytes_per_s) <= 0:
            raise ScenarioError("unpacked_bytes and all rates of an ImageServer must be above 0.")
        if self.num_cores < 1:
            raise ScenarioError(f"num_cores = {self.num_cores} in ImageServer; write 1 or more.")

    def unpacking_s(self, *, on_device: bool) -> float:
        """One image, alone."""
        return self.unpacked_bytes / (self.device_bytes_per_s if on_device else self.core_bytes_per_s)

    def copying_s(self, *, on_device: bool) -> float:
        """Time of copying; data crosses the link still packed where the device unpacks it."""
        moved = self.packed_bytes if on_device else self.input_bytes
        return self.link_latency_s + moved / self.link_bytes_per_s

    def latency_s(self, *, on_device: bool) -> float:
        """Latency (s) of a lone request."""
        return self.unpacking_s(on_device=on_device) + self.copying_s(on_device=on_device) + self.network_s

    def overhead_frac(self, *, on_device: bool) -> float:
        """Share of a lone request's latency that is not the network."""
        return 1.0 - self.network_s / self.latency_s(on_device=on_device)

    def images_per_s(self, *, on_device: bool) -> float:
        """Images per second over many requests, in full batches."""
        unpacking_s = self.unpacking_s(on_device=on_device)
        device_s = self.network_batched_s + (unpacking_s if on_device else 0.0)
        host_s = 0.0 if on_device else unpacking_s / self.num_cores
        moved = self.packed_bytes if on_device else self.input_bytes
        return 1.0 / max(device_s, host_s, moved / self.link_bytes_per_s)

    def lost_frac(self, *, on_device: bool) -> float:
        """Share lost of the images per second that the network alone would make."""
        return 1.0 - self.images_per_s(on_device=on_device) * self.network_batched_s
