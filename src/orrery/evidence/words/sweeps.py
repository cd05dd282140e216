"""Inputs of set-ups: what a curve runs over, where no other theme has it."""

INPUTS: dict[str, str] = {
    "clock_ratio": "clock of a device over its full one",
    "processor_flops_per_s": "peak of a processor that is described by its rates alone",
    "slow_memory_bytes_per_s": "of the larger of a device's two memories",
    "fast_memory_bytes_per_s": "of the smaller of a device's two memories",
    "fast_memory_bytes": "size of the smaller of a device's two memories",
}

UNITS = frozenset({"datasets"})
