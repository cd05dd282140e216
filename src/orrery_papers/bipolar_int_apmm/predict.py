"""Bipolar integers: one-bit passes against the library's integer products, and a decoded token against 16 bits."""

from collections.abc import Iterator

from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.kernels.lowbit.one_bit import integer_gemm_s, nearest_integer_bits, one_bit_gemm_s
from orrery.kernels.lowbit.packed import plain_gemm_s
from orrery_papers.shared.layer_costs import decode_attention_s, over_linears, words


def predict(paper: Paper) -> Iterator[Prediction]:
    """The best of the swept products, and the best of the swept widths for one token."""
    setup = paper.setups["rtx-3090"]
    ratios = {
        pair: max(matmul_ratio(setup, int(size), pair) for size in setup.numbers("sizes_swept"))
        for pair in pairs(setup)
    }
    shown = ", ".join(f"W{p}A{q} {ratio:.2f}" for (p, q), ratio in ratios.items())
    yield Prediction(
        claim="matmul",
        predicted=max(ratios.values()),
        because=f"p q passes at eight times the eight-bit rate against four bits: {shown}",
        differs="two passes at four times the four-bit rate can gain twice at most; more needs a library product "
        "that stays further from its roof than its eight-bit kernels do",
    )
    tokens = {pair: token_ratio(setup, *pair) for pair in pairs(setup)}
    shown = ", ".join(f"W{p}A{q} {ratio:.2f}" for (p, q), ratio in tokens.items())
    yield Prediction(
        claim="inference",
        predicted=max(tokens.values()),
        because=f"bytes of weights, with head and attention in 16 bits: {shown}",
        differs="head and attention stay in 16 bits here, and each product pays a launch",
    )


def pairs(setup: Setup) -> list[tuple[int, int]]:
    """Widths of weights and activations."""
    split = (pair.split("x") for pair in words(setup.word("bit_pairs_swept")))
    return [(int(p), int(q)) for p, q in split]


def matmul_ratio(setup: Setup, size: int, pair: tuple[int, int]) -> float:
    """The library's time over that of the passes, for a square product."""
    device = get_device(setup.word("device"))
    library = integer_gemm_s(size, size, size, nearest_integer_bits(*pair), device)
    return float(library / one_bit_gemm_s(size, size, size, *pair, device))


def token_ratio(setup: Setup, weight_bits: int, activation_bits: int) -> float:
    """One decoded token with 16-bit layers over one with bit-decomposed layers."""
    device, model, batch = (
        get_device(setup.word("device")),
        get_model(setup.word("model")),
        int(setup.number("num_batch")),
    )
    head = float(plain_gemm_s(batch, model.vocab_size, model.hidden_size, device))
    (context,) = setup.numbers("context_tokens_swept")
    rest = head + decode_attention_s(model, device, batch, int(context), "fp16")
    plain = over_linears(model, lambda n, k: float(plain_gemm_s(batch, n, k, device)))
    ours = over_linears(model, lambda n, k: float(one_bit_gemm_s(batch, n, k, weight_bits, activation_bits, device)))
    return (plain + rest) / (ours + rest)
