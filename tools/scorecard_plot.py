"""Predicted against measured, drawn as SVG: one panel a class of work, darker where more rows fall."""

from collections.abc import Sequence

import numpy as np

from orrery.drawing import Pairs, parity
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
NUM_COLUMNS = 4
UNITS = {"time_s": "s", "latency_s": "s", "tpot_s": "s", STEP: "s", "peak_memory_bytes": "B"}


def draw(scored: Sequence[Scored]) -> str:
    """The whole picture."""
    panels = (_panel(title, metric, _points(scored, metric, words)) for title, metric, words in PANELS)
    return parity(list(panels), title="Predicted against measured, by class of work", num_columns=NUM_COLUMNS) + "\n"


def _panel(title: str, metric: str, s: Scored | None) -> Pairs:
    return Pairs(title, s.measured, s.ours, UNITS.get(metric, "")) if s else Pairs(title, (), ())


def _points(scored: Sequence[Scored], metric: str, words: tuple[str, ...]) -> Scored | None:
    chosen: list[Scored] = []
    for s in scored:
        if s.metric == metric:
            mask = np.isin(s.words[next(w for w in ("op", "mode", "task") if w in s.words)], words)
            if mask.any():
                chosen.append(s.take(mask))
    return join(chosen) if chosen else None
