"""What may be measured: one op or collective with the engine whose kernels do it."""

from dataclasses import dataclass

from orrery import kernels, network
from orrery.hardware.device import Device
from orrery.kernels import host
from orrery.kernels.ops import AttentionDecode, AttentionPrefill, Elementwise, Gemm, Op
from orrery.network.collective import Collective


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Work:
    """One thing to time, and how a reader would call it."""

    op: Op | Collective
    engine: str
    weight: float = 1.0  # of its prediction among all that are to become sure

    @property
    def key(self) -> tuple[str, str, str]:
        """Under which op, format and engine its constants are filed."""
        if isinstance(self.op, Collective):
            return self.op.kind, "any", self.engine
        return host.key(self.op, self.engine)

    @property
    def name(self) -> str:
        """In words, for tables and progress."""
        match self.op:
            case Gemm(m=m, n=n, k=k, format=format, is_cold=is_cold):
                return f"product {m} x {n} x {k}, {format}{'' if is_cold else ', cached'}"
            case AttentionPrefill(query_tokens=q, num_heads=h, head_size=s):
                return f"attention of {q} tokens, {h} heads of {s}"
            case AttentionDecode(batch=b, context_tokens=c, num_heads=h, head_size=s):
                return f"attention of {b} x 1 to {c} tokens, {h} heads of {s}"
            case Elementwise(kind=kind, tokens=t, width=w):
                return f"{kind.replace('_', ' ')} of {t} x {w}"
            case Collective(kind=kind, num_devices=n, message_bytes=size):
                return f"{kind.replace('_', '-')} of {size:g} bytes by {n}"
            case op:
                return type(op).__name__

    def time_s(self, device: Device) -> float:
        """What ``device`` is predicted to take."""
        if isinstance(self.op, Collective):
            return float(network.predict(self.op, device).time_s)
        return float(kernels.predict(self.op, device, self.engine).time_s)
