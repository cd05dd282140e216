"""Ways to run a pass of the layers, and ways to move bytes between memories: one file each, found because it is here.

Seam ``execution.overlap``: rule(total_s, network_s, memory_s, split_extra_s, halves_network_extra_s, num_layers, knobs)
is the time of a pass on the device. Seam ``execution.transfer``: rule(moved_bytes, link_bytes_per_s, latency_s, knobs)
is the time that a transfer shows. Rules are scalar arithmetic; ``knobs`` holds the fields of the dataclass in order.
"""
