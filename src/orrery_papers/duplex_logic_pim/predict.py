"""Duplex: layers that go to the processor below the memory, to the device's own, or to both, by ``orrery estimate``."""

from collections.abc import Iterator

from orrery.catalog.devices import FOLDER, get_device
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.hardware.roofs import Roofs
from orrery.kernels import predict as timed
from orrery.kernels.ops import AttentionDecode
from orrery.models.model import SoftmaxAttention
from orrery.scenario.ask import Answer, estimate
from orrery_papers.duplex_logic_pim.takeover import takeover_flops_per_byte
from orrery_papers.shared.described import written
from orrery_papers.shared.setup import layout_of

CONTEXT_TOKENS = 1024  # of the intensity of attention: long enough that queries and results hardly count


def predict(paper: Paper) -> Iterator[Prediction]:
    """Throughput first, for the sweep; then operations a byte."""
    setup = paper.setups["device"]
    cases = [
        (batch, tokens, found)
        for batch in setup.numbers("batches_swept")
        for tokens in setup.numbers("input_tokens_swept")
        if (found := gain(setup, int(batch), int(tokens)))
    ]
    batch, tokens, best = max(cases, key=lambda case: case[2])
    yield Prediction(
        claim="throughput",
        predicted=best,
        because=f"best of {len(cases)} cases, {batch:g} sequences of {tokens:g} + {tokens:g} tokens",
        differs="Mixtral alone is run; the logic die's rates are recalled",
    )
    near, far = processors(setup)
    yield Prediction(
        claim="attention-intensity",
        predicted=attention_intensity(setup),
        because=f"one new token of {setup.word('model')} against {CONTEXT_TOKENS} cached ones; heads share keys and "
        "values",
    )
    yield Prediction(
        claim="logic-intensity",
        predicted=takeover_flops_per_byte(near, far),
        because=f"ridge at {near.ridge_flops_per_byte:.3g}; from here on the device's own processor is faster",
    )


def gain(setup: Setup, batch: int, tokens: int) -> float:
    """Tokens a second over the device's without such dies; 0 where the batch does not fit."""
    device = setup.word("device")
    rates = [rate(setup, name, batch, tokens) for name in (device, without_dies(device))]
    return rates[0] / rates[1] if all(rates) else 0.0


def without_dies(device: str) -> str:
    """A file of the same device without the processor below its memory."""
    lines = (FOLDER / f"{device}.toml").read_text(encoding="utf-8").splitlines()
    return written("\n".join(x for x in lines if not x.startswith("near_memory")), f"{device}-without.toml")


def rate(setup: Setup, device: str, batch: int, tokens: int) -> float:
    """Tokens a second of a batch from start to end; 0 where it does not fit."""
    found = estimate(
        model=setup.word("model"),
        device=device,
        tp=layout_of(setup.word("layout")).tp,
        weights=setup.word("weights_format"),
        batch=batch,
        input_tokens=tokens,
        output_tokens=tokens,
    )
    return found.estimate.output_tokens_per_s if isinstance(found, Answer) else 0.0


def processors(setup: Setup) -> tuple[Roofs, Roofs]:
    """Below the memory, and the device's own."""
    device = get_device(setup.word("device"))
    assert device.near_memory
    own = Roofs(flops_per_s=device.dense_flops_per_s["fp16"], bytes_per_s=device.memory_bandwidth_bytes_per_s)
    return device.near_memory, own


def attention_intensity(setup: Setup) -> float:
    """Operations a byte of one layer's attention of one new token."""
    mixer = get_model(setup.word("model")).blocks[0].mixer
    assert isinstance(mixer, SoftmaxAttention)
    op = AttentionDecode(
        batch=1,
        context_tokens=CONTEXT_TOKENS,
        num_heads=mixer.num_heads,
        num_kv_heads=mixer.num_kv_heads,
        head_size=mixer.head_size,
        format="fp16",
        kv_format="fp16",
    )
    timing = timed(op, get_device(setup.word("device")))
    return float(timing.flops / timing.bytes)
