"""Predicted against measured, drawn by hand as SVG: one panel a class of work, darker where more rows fall."""

from collections.abc import Sequence

import numpy as np

from scorecard_rows import Scored, join
from scorecard_training import STEP

PANELS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("GEMM", "time_s", ("gemm",)),
    ("attention", "time_s", ("attention_prefill", "attention_decode")),
    ("latent attention", "time_s", ("mla_prefill", "mla_decode", "mla_absorb_query", "mla_absorb_value")),
    ("experts", "time_s", ("moe",)),
    ("collectives", "time_s", ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv")),
    ("static runs: latency", "latency_s", ("static",)),
    ("offline runs: tokens/s", "output_tokens_per_s", ("offline",)),
    ("closed loop: time per token", "tpot_s", ("closed",)),
    ("pre-training: step", STEP, ("pretrain",)),
    ("fine-tuning: step", STEP, ("finetune",)),
    ("pre-training: memory", "peak_memory_bytes", ("pretrain",)),
    ("fine-tuning: memory", "peak_memory_bytes", ("finetune",)),
)
SIDE, PAD, CELLS, COLUMNS = 190, 26, 48, 4


def draw(scored: Sequence[Scored]) -> str:
    """The whole picture."""
    rows = -(-len(PANELS) // COLUMNS)
    width, height = COLUMNS * (SIDE + PAD) + PAD, rows * (SIDE + 2 * PAD) + PAD
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
        ' aria-label="Predicted against measured, by class of work">',
        "<style>text{font-family:ui-sans-serif,system-ui,sans-serif;font-size:11px;fill:#4a525a}"
        ".t{font-size:12px;font-weight:600;fill:#29313a}</style>",
    ]
    for number, (title, metric, words) in enumerate(PANELS):
        x = PAD + (number % COLUMNS) * (SIDE + PAD)
        y = PAD + (number // COLUMNS) * (SIDE + 2 * PAD)
        out += panel(x, y, title, _points(scored, metric, words))
    return "\n".join([*out, "</svg>", ""])


def _points(scored: Sequence[Scored], metric: str, words: tuple[str, ...]) -> Scored | None:
    chosen: list[Scored] = []
    for s in scored:
        if s.metric == metric:
            mask = np.isin(s.words[next(w for w in ("op", "mode", "task") if w in s.words)], words)
            if mask.any():
                chosen.append(s.take(mask))
    return join(chosen) if chosen else None


def panel(x: int, y: int, title: str, s: Scored | None) -> list[str]:
    """One square with logarithmic axes of equal span, the diagonal, and cells by count."""
    out = [
        f'<text class="t" x="{x}" y="{y - 6}">{title}</text>',
        f'<rect x="{x}" y="{y}" width="{SIDE}" height="{SIDE}" fill="#fbfaf7" stroke="#cfc8bb"/>',
    ]
    if s is None:
        return out
    measured, ours = np.log10(s.measured), np.log10(s.ours)
    low, high = np.quantile(measured, [0.001, 0.999])
    low, high = low - 0.3, high + 0.3
    counts, _, _ = np.histogram2d(measured, ours, bins=CELLS, range=[[low, high], [low, high]])
    step = SIDE / CELLS
    for i, j in np.argwhere(counts > 0):
        shade = 0.15 + 0.85 * np.log1p(counts[i, j]) / np.log1p(counts.max())
        out.append(
            f'<rect x="{x + i * step:.1f}" y="{y + SIDE - (j + 1) * step:.1f}" width="{step:.1f}" height="{step:.1f}"'
            f' fill="#35526b" fill-opacity="{shade:.2f}"/>'
        )
    out.append(f'<path d="M{x} {y + SIDE} L{x + SIDE} {y}" stroke="#b5533c" stroke-width="0.8"/>')
    for power in range(int(np.ceil(low)), int(np.floor(high)) + 1):
        at = x + SIDE * (power - low) / (high - low)
        out.append(f'<text x="{at:.0f}" y="{y + SIDE + 13}" text-anchor="middle">{_tick(power)}</text>')
    return out


def _tick(power: int) -> str:
    return f"10{str(power).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
