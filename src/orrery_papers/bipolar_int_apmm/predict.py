"""Bipolar integers: one-bit passes against the library's integer products, and a decoded token against 16 bits."""

from collections.abc import Iterator

from orrery.base.errors import FactError
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.ask import Answer
from orrery.scenario.estimates import estimate
from orrery_papers.shared.kernel_rows import kernel_rows
from orrery_papers.shared.layer_costs import words


def predict(paper: Paper) -> Iterator[Prediction]:
    """The best of the swept products, and the best of the swept widths for one token."""
    setup = paper.setups["rtx-3090"]
    ratios = {
        pair: max(matmul_ratio(setup, int(size), *pair) for size in setup.numbers("sizes_swept"))
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
    plain_s = token_s(setup)
    tokens = {(p, q): plain_s / token_s(setup, p, q) for p, q in pairs(setup)}
    shown = ", ".join(f"W{p}A{q} {ratio:.2f}" for (p, q), ratio in tokens.items())
    yield Prediction(
        claim="inference",
        predicted=max(tokens.values()),
        because=f"one token in a serving engine, {plain_s * 1e3:.3g} ms in 16 bits; bytes of weights: {shown}",
        differs="head, embedding, attention and cache stay in 16 bits here, and the engine's host work is the same",
    )


def pairs(setup: Setup) -> list[tuple[int, int]]:
    """Widths of weights and activations."""
    split = (pair.split("x") for pair in words(setup.word("bit_pairs_swept")))
    return [(int(p), int(q)) for p, q in split]


def matmul_ratio(setup: Setup, size: int, weight_bits: int, activation_bits: int) -> float:
    """The library's time over that of the passes, for a square product: ``orrery kernel gemm``."""
    rows = kernel_rows(
        "gemm", device=setup.word("device"), m=size, n=size, k=size, **formats(weight_bits, activation_bits)
    )
    return rows["integer-units"].time_s / rows["one-bit-fused"].time_s


def token_s(setup: Setup, weight_bits: int = 0, activation_bits: int = 0) -> float:
    """Seconds of one decoded token: ``orrery estimate``, with those widths or in 16 bits."""
    (context,) = setup.numbers("context_tokens_swept")
    found = estimate(
        model=setup.word("model"),
        device=setup.word("device"),
        input_tokens=context - 1,
        output_tokens=2,
        concurrency=int(setup.number("num_batch")),
        **(formats(weight_bits, activation_bits) if weight_bits else {}),
    )
    if not isinstance(found, Answer):
        raise FactError(f"setup {setup.name}: {found}; state one that fits.")
    return found.estimate.tpot_s


def formats(weight_bits: int, activation_bits: int) -> dict[str, str]:
    """Both operands as whole numbers of plus and minus ones."""
    return {"weights": f"bipolar{weight_bits}", "activations": f"bipolar{activation_bits}"}
