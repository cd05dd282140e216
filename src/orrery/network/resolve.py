"""Which measured constants answer for a collective: the library's own, or the nearest kin's, never in silence.

Engines bring their own all-reduce; everything else they leave to the vendor's library (``nccl``).
"""

from dataclasses import replace

from orrery.base.errors import OutOfRange
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device

VENDOR_LIBRARY = "nccl"
"""Measured for every collective; other vendors' libraries (RCCL, HCCL, XLA) are built on the same algorithms."""

KIN = {
    "vllm-eager": ("vllm", "tensorrt-llm", VENDOR_LIBRARY),
    "sglang": ("vllm", "tensorrt-llm", VENDOR_LIBRARY),
    "sglang-eager": ("vllm-eager", "sglang", "vllm", VENDOR_LIBRARY),
    "vllm": ("tensorrt-llm", VENDOR_LIBRARY),
    "tensorrt-llm": ("vllm", VENDOR_LIBRARY),
    "nccl-eager": (VENDOR_LIBRARY,),
    "deepep-low-latency": ("deepep-normal", "tensorrt-llm-two-sided"),
    "deepep-normal": ("deepep-low-latency", "tensorrt-llm-two-sided"),
    "tensorrt-llm-one-sided": ("tensorrt-llm-two-sided", "deepep-low-latency"),
    "tensorrt-llm-two-sided": ("tensorrt-llm-one-sided", "deepep-low-latency"),
}
"""Libraries whose collectives are built most alike, nearest first."""

SPELLINGS = {
    "rccl": "nccl",
    "hccl": "nccl",
    "xla": "nccl",
    "": "nccl",
    "nccl-tests": "nccl",
    "nccl-tests all_reduce_perf": "nccl",
    "torch.distributed all_reduce": "nccl",
    "nccl (torch.distributed)": "nccl-eager",
    "nnscaler comm profiler": "nccl-eager",
    "tensorrt-llm custom all-reduce": "tensorrt-llm",
    "vllm custom all-reduce (graph)": "vllm",
    "vllm custom all-reduce (eager)": "vllm-eager",
    "deepep low-latency": "deepep-low-latency",
    "deepep normal": "deepep-normal",
    "tensorrt-llm nvlinkonesided": "tensorrt-llm-one-sided",
    "tensorrt-llm nvlinktwosided": "tensorrt-llm-two-sided",
}
"""Libraries' spellings in tables, in lower case, and our names."""

ANY_FORMAT = "any"
"""Collectives of bytes do not ask what the bytes mean; their constants are filed under this format."""

OTHER_LIBRARY = 1.3
"""How much wider an interval becomes (log space) when the constants are another library's."""


def library_key(words: str) -> str:
    """The library that these words of a user or a table mean; unknown ones stay, and borrow."""
    plain = words.strip().lower()
    if plain.startswith("torch") and "nccl" in plain:
        return "nccl-eager"  # a script launches each collective while the device waits
    return SPELLINGS.get(plain, "nccl" if plain.startswith("nccl-tests") else plain)


def find(device: Device, op: str, library: str = "", format: str = ANY_FORMAT) -> Calibration:
    """The constants for ``op`` by ``library`` on ``device``; OutOfRange where nothing alike was ever measured."""
    library = library_key(library)
    for other in (library, *KIN.get(library, (VENDOR_LIBRARY,))):
        for kin in dict.fromkeys((format, ANY_FORMAT)):
            if found := device.calibrations.get((op, kin, other)):
                return found if _is_same(op, library, other) else _borrowed(found)
    raise OutOfRange(f"Nothing was measured that is like {op} by {library} on {device.name}.")


def _is_same(op: str, library: str, other: str) -> bool:
    return other == library or (other == VENDOR_LIBRARY and op != "all_reduce")


def _borrowed(found: Calibration) -> Calibration:
    because = f"borrowed from {found.op} by {found.engine}"
    return replace(found, spread=found.spread.widened(OTHER_LIBRARY, because))
