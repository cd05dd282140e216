"""Inputs of set-ups: what a curve runs over, where no other theme has it."""

INPUTS: dict[str, str] = {
    "clock_ratio": "clock of a device over its full one",
    "processor_flops_per_s": "peak of a processor that is described by its rates alone",
    "slow_memory_bytes_per_s": "of the larger of its two memories",
    "fast_memory_bytes_per_s": "of the smaller one",
    "fast_memory_bytes": "size of the smaller one",
}

UNITS = frozenset({"datasets"})
