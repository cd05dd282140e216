"""The kernels among which the next measurement is chosen, and which are to be predicted: what steps of models ask for.

Sizes span what decoders of a hundred million to tens of billions of parameters ask of one device; those that would
take longer than ``LONGEST_S`` by what is known of the device, or more memory than it has free, stay out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from orrery.calibrate.device.work import Work
from orrery.hardware.device import Device
from orrery.kernels.ops import AttentionDecode, AttentionPrefill, Elementwise, Gemm
from orrery.network.collective import Collective

ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 2048)
WEIGHTS = (
    (64, 256),
    (512, 96),
    (256, 256),
    (768, 256),
    (512, 1024),
    (1024, 512),
    (2048, 768),
    (768, 2048),
    (2048, 2048),
    (4096, 1024),
    (8192, 2048),
    (4096, 4096),
    (14336, 4096),
)
"""Columns and depth of weights, small to large."""

HEADS = ((4, 4, 64), (8, 2, 64), (12, 12, 64), (32, 8, 128))
"""Heads, key/value heads and head size."""

PROMPTS = (16, 64, 128, 256, 512, 2048)
BATCHES, CONTEXTS = (1, 4, 16, 64), (32, 128, 512, 2048, 8192)
WIDTHS = (256, 768, 2048, 4096)
TOKENS = (1, 4, 16, 64, 256, 1024)
VOCABULARY = (2048, 8192, 32000)
MESSAGES = tuple(4**i for i in range(5, 13))
"""Bytes, 1 KiB to 16 MiB."""

LONGEST_S, LARGEST_FRAC = 0.25, 0.05
"""Longest call and largest share of the memory that one measurement takes."""

SHARE = {"gemm": 0.5, "attention_prefill": 0.15, "attention_decode": 0.15}
EXCHANGES_SHARE = 0.25
"""Weight of an op's predictions among all, about its share of a step's time; the others share the rest. Exchanges come
on top."""


def pool_of(device: Device, engine: str, formats: Sequence[str]) -> tuple[Work, ...]:
    """Return the work of the pool that fits ``device`` and takes it a reasonable time, weighted."""
    every = [work for format in formats for work in _works(engine, format) if work.key in device.calibrations]
    possible = [work for work in every if work.time_s(device) <= LONGEST_S and _bytes(work) <= _room(device)]
    counts: dict[str, int] = {}
    for work in possible:
        counts[work.key[0]] = counts.get(work.key[0], 0) + 1
    rest = (1.0 - sum(SHARE.values())) / max(1, sum(op not in SHARE for op in counts))
    return tuple(replace(work, weight_frac=SHARE.get(work.key[0], rest) / counts[work.key[0]]) for work in possible)


def exchanges_of(engine: str, num_devices: int) -> tuple[Work, ...]:
    """Collectives between the devices of this machine."""
    kinds = ("send_recv", "all_reduce")
    return tuple(
        Work(
            op=Collective(
                kind=kind,
                num_devices=num_devices,
                message_bytes=float(size),
                devices_per_node=num_devices,
                library=engine,
                has_peer_to_peer=True,
            ),
            engine=engine,
            weight_frac=EXCHANGES_SHARE / len(kinds) / len(MESSAGES),
        )
        for kind in kinds
        for size in MESSAGES
    )


def _works(engine: str, format: str) -> Iterator[Work]:
    for m in ROWS:
        for n, k in WEIGHTS:
            for is_cold in (True, False):
                yield Work(op=Gemm(m=m, n=n, k=k, format=format, is_cold=is_cold, quantises_input=False), engine=engine)
    for heads, kv_heads, size in HEADS:
        for tokens in PROMPTS:
            yield Work(
                op=AttentionPrefill(
                    batch=1,
                    query_tokens=tokens,
                    context_tokens=tokens,
                    num_heads=heads,
                    num_kv_heads=kv_heads,
                    head_size=size,
                    format=format,
                    kv_format=format,
                ),
                engine=engine,
            )
        for batch in BATCHES:
            for context in CONTEXTS:
                yield Work(
                    op=AttentionDecode(
                        batch=batch,
                        context_tokens=context,
                        num_heads=heads,
                        num_kv_heads=kv_heads,
                        head_size=size,
                        format=format,
                        kv_format=format,
                    ),
                    engine=engine,
                )
    for kind, widths in (("norm", WIDTHS), ("gated_activation", WIDTHS), ("sample", VOCABULARY)):
        for tokens in TOKENS:
            for width in widths:
                yield Work(op=Elementwise(kind=kind, tokens=tokens, width=width, format=format), engine=engine)


def _bytes(work: Work) -> float:
    """Bytes of the largest operands, in FP32."""
    match work.op:
        case Gemm(m=m, n=n, k=k):
            return 4.0 * float(m * k + k * n + m * n)
        case AttentionPrefill(query_tokens=q, num_heads=h, head_size=s):
            return 4.0 * float(h * q * q + 4 * h * q * s)
        case AttentionDecode(batch=b, context_tokens=c, num_kv_heads=h, head_size=s):
            return 8.0 * float(b * c * h * s)
        case Elementwise(tokens=t, width=w):
            return 16.0 * float(t * w)
        case _:
            return 0.0


def _room(device: Device) -> float:
    return LARGEST_FRAC * device.memory_capacity_bytes
