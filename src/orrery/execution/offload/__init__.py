"""Memory tiers of training: what stays on the device, what goes to host memory and drives, and what a step then takes.

A schedule is a technique at the seam ``execution.offload``: from the work of a step and the tiers below the device to
seconds, and bytes in each tier. Assigning tensors to a small fast memory is the seam ``execution.mapping``.
"""
