"""All-reduce among a few devices behind home routers, where the way is longer than the message.

A message takes ``way_s`` from one device to another, whatever its size, and its bytes leave and enter each device one
after the other. In a star everybody sends to one device, which adds and sends back: two ways, and its own link carries
every message. In a ring each of 2 (n - 1) steps waits for the way, and carries a part of 1 / n. Li et al., TPI-LLM
(arXiv 2410.00531); rings as [thakur-2005].
"""


def star_s(num_devices: int, message_bytes: float, way_s: float, link_bytes_per_s: float) -> float:
    """There and back through one device."""
    if num_devices < 2:
        return 0.0
    return 2.0 * (way_s + (num_devices - 1) * message_bytes / link_bytes_per_s)


def ring_s(num_devices: int, message_bytes: float, way_s: float, link_bytes_per_s: float) -> float:
    """Round twice, in parts."""
    return 2.0 * (num_devices - 1) * (way_s + message_bytes / num_devices / link_bytes_per_s)
