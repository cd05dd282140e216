"""Encrypted, serial: a confidential device takes only what the host's cores have encrypted first."""

from dataclasses import dataclass

from orrery.base.knobs import check_above, check_range
from orrery.base.technique import Technique
from orrery.execution.batch import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class SerialKnobs:
    """Rate of AES-GCM on one core, cores that encrypt, and what each call adds.

    3.4 GB/s: `openssl speed -evp aes-256-gcm -bytes 1048576` on one thread of a Xeon at 2.5 GHz. The driver encrypts in
    the calling thread [pipellm-2025]. ``call_s`` is assumed: the copy returns only when the device has it all.
    """

    core_bytes_per_s: float = 3.4e9
    num_cores: int = 1
    call_s: float = 10e-6

    def __post_init__(self) -> None:
        check_above(self, "core_bytes_per_s", 0.0)
        check_above(self, "num_cores", 0)
        check_range(self, "call_s", 0.0, 1.0)


def rule(moved_bytes: float, link_bytes_per_s: float, latency_s: float, knobs: Floats) -> float:
    """latency + call + bytes / encryption + bytes / link: the copy waits for ciphertext, the caller for the copy."""
    if moved_bytes <= 0.0:
        return 0.0
    return latency_s + knobs[2] + moved_bytes / (knobs[0] * knobs[1]) + moved_bytes / link_bytes_per_s


TECHNIQUE = Technique(
    name="encrypted-serial",
    extension_point="execution.transfer",
    rule=rule,
    knobs=SerialKnobs,
    gains="Nothing readable passes between host and device.",
    costs="Ten or more times the time of a plain copy, on the critical path.",
    claims=("pipellm-2025", "nvidia-confidential-computing"),
)
