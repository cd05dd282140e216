"""What was to be reached on the scorecard, and what is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orrery.evidence.metrics import FITS
from scorecard_choose import NEW, NEW_TABLES, NVIDIA, main_op, none, rl_steps, runs, training, vtrain, with_memory
from scorecard_ranks import rank_correlations
from scorecard_rows import Mask, Scored, join
from scorecard_training import STEP


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One thing to reach: which rows, which statistic, how small (and where ``least`` is set, how large)."""

    name: str
    rows: Callable[[Scored], Mask]
    metric: str
    statistic: str
    limit: float
    least: float = 0.0
    who: str = "ours"

    @property
    def range(self) -> str:
        """As it is written."""
        if not self.least:
            return self.shown(self.limit)
        low = self.shown(self.least)
        return f"{low} to {self.shown(self.limit)}" if self.limit < 1.0 else f"at least {low}"

    def shown(self, value: float) -> str:
        """A value of the statistic as it is written; nothing where there is none."""
        if self.statistic != "rank correlation":
            return pct(value)
        return f"{value:.3f}" if np.isfinite(value) else ""

    def mark(self, found: float) -> str:
        """Whether it is reached."""
        return "reached" if self.least <= found <= self.limit else "missed"


GOALS = (
    Goal(
        name="GEMM, physics alone", rows=main_op("gemm"), metric="time_s", statistic="median", limit=0.06, who="physics"
    ),
    Goal(
        name="GEMM, physics alone", rows=main_op("gemm"), metric="time_s", statistic="mean", limit=0.085, who="physics"
    ),
    Goal(name="GEMM", rows=main_op("gemm"), metric="time_s", statistic="median", limit=0.04),
    Goal(name="GEMM", rows=main_op("gemm"), metric="time_s", statistic="mean", limit=0.06),
    Goal(
        name="Prefill attention, physics alone",
        rows=main_op("attention_prefill"),
        metric="time_s",
        statistic="median",
        limit=0.06,
        who="physics",
    ),
    Goal(name="Prefill attention", rows=main_op("attention_prefill"), metric="time_s", statistic="median", limit=0.03),
    Goal(
        name="Decode attention, physics alone",
        rows=main_op("attention_decode"),
        metric="time_s",
        statistic="median",
        limit=0.09,
        who="physics",
    ),
    Goal(name="Decode attention", rows=main_op("attention_decode"), metric="time_s", statistic="median", limit=0.04),
    Goal(name="Experts (MoE)", rows=main_op("moe"), metric="time_s", statistic="median", limit=0.10),
    Goal(
        name="Latent attention (MLA)",
        metric="time_s",
        statistic="median",
        limit=0.10,
        rows=main_op("mla_prefill", "mla_decode", "mla_absorb_query", "mla_absorb_value"),
    ),
    Goal(
        name="Collectives",
        metric="time_s",
        statistic="median",
        limit=0.12,
        rows=lambda s: ~none(s) if s.table == "collectives.csv.gz" else none(s),
    ),
    Goal(
        name="TensorRT-LLM 1.0 and later, offline",
        rows=runs("trtllm_throughput", "offline", ("1.0", "1.1", "1.2")),
        metric="output_tokens_per_s",
        statistic="median",
        limit=0.04,
    ),
    Goal(
        name="TensorRT-LLM 1.0 and later, offline",
        rows=runs("trtllm_throughput", "offline", ("1.0", "1.1", "1.2")),
        metric="output_tokens_per_s",
        statistic="p90",
        limit=0.09,
    ),
    Goal(
        name="TensorRT-LLM 0.17, offline",
        rows=runs("trtllm_throughput", "offline", ("0.17",)),
        metric="output_tokens_per_s",
        statistic="median",
        limit=0.06,
    ),
    Goal(
        name="Static batches, NVIDIA devices (Argonne)",
        rows=runs("argonne_static", "static", vendor=NVIDIA),
        metric="latency_s",
        statistic="median",
        limit=0.05,
    ),
    Goal(
        name="Older engines, static (TensorRT-LLM to 0.9)",
        rows=runs("trtllm_throughput", "static"),
        metric="output_tokens_per_s",
        statistic="median",
        limit=0.10,
    ),
    Goal(name="Closed loop", rows=runs("closed_loop", "closed"), metric="tpot_s", statistic="median", limit=0.10),
    Goal(name="Closed loop", rows=runs("closed_loop", "closed"), metric="tpot_s", statistic="p90", limit=0.25),
    Goal(name="Closed loop", rows=runs("closed_loop", "closed"), metric="ttft_s", statistic="median", limit=0.35),
    Goal(
        name="Training step, A100, several nodes (vTrain)",
        rows=vtrain(False),
        metric=STEP,
        statistic="mean",
        limit=0.07,
    ),
    Goal(name="Training step, A100, one node (vTrain)", rows=vtrain(True), metric=STEP, statistic="mean", limit=0.07),
    Goal(
        name="Training step, A100 (LLM Foundry)",
        rows=training("llm_foundry", ("a100",)),
        metric=STEP,
        statistic="mean",
        limit=0.07,
    ),
    Goal(
        name="Training step, A100 (selective recomputation, 22B to 1T)",
        metric=STEP,
        statistic="mean",
        limit=0.07,
        rows=training("papers_and_blogs_misc", ("a100",), framework="megatron-lm"),
    ),
    *(
        Goal(
            name=f"Training step, H100, B200, GB200 ({name})",
            rows=training(table, NEW),
            metric=STEP,
            statistic="mean",
            limit=0.10,
        )
        for name, table in NEW_TABLES.items()
    ),
    Goal(
        name="Training memory, allocator's peak",
        rows=with_memory(),
        metric="peak_memory_bytes",
        statistic="median",
        limit=0.05,
    ),
    Goal(
        name="Training memory, models from 1B",
        rows=with_memory(size=">= 1B"),
        metric="peak_memory_bytes",
        statistic="mean",
        limit=0.03,
    ),
    Goal(
        name="Training out of memory",
        rows=training(outcome="out of memory"),
        metric=FITS,
        statistic="foreseen",
        limit=1.0,
        least=0.95,
    ),
    Goal(name="Training ran, called out of memory", rows=training(), metric=FITS, statistic="false alarms", limit=0.02),
    Goal(
        name="Training step, interval", rows=training(), metric=STEP, statistic="80 % covered", limit=0.85, least=0.75
    ),
    Goal(
        name="Training memory, interval",
        rows=training(),
        metric="peak_memory_bytes",
        statistic="80 % covered",
        limit=0.85,
        least=0.75,
    ),
    Goal(name="RL steps", rows=rl_steps, metric="step_time_s", statistic="mean", limit=0.15),
    Goal(
        name="Training, order of layouts",
        rows=training(),
        metric=STEP,
        statistic="rank correlation",
        limit=1.0,
        least=0.95,
    ),
)


def _covered(s: Scored, who: str) -> float:
    share = s.score(who).covered_80_frac
    return np.nan if share is None else share


STATISTICS: dict[str, Callable[[Scored, str], float]] = {
    "median": lambda s, who: s.score(who).median_abs_error_frac,
    "mean": lambda s, who: s.score(who).mean_abs_error_frac,
    "p90": lambda s, who: s.score(who).p90_abs_error_frac,
    "80 % covered": _covered,
    "false alarms": lambda s, who: s.score(who).mean_abs_error_frac,
    "foreseen": lambda s, who: 1.0 - s.score(who).mean_abs_error_frac,
    "rank correlation": lambda s, who: float(np.median(rank_correlations(s, who) or [np.nan])),
}
"""What a goal asks of the chosen rows and of one who predicts them."""


def goals(scored: Sequence[Scored], left_out: Mapping[str, Mapping[str, float]]) -> list[str]:
    """What was to be reached, and what is."""
    lines = ["| what | metric | statistic | goal | **orrery** | roofline | five constants | rows | |", "|" + "---|" * 9]
    for goal in GOALS:
        start = f"| {goal.name} | `{goal.metric}` | {goal.statistic} | {goal.range} |"
        if (whole := _chosen(scored, goal)) is None:
            lines.append(f"{start} no row | | | 0 | |")
            continue
        found = {w: STATISTICS[goal.statistic](whole, w) for w in (goal.who, "roofline", "closed")}
        is_rank = goal.statistic == "rank correlation"
        rows = f"{len(rank_correlations(whole, goal.who))} groups" if is_rank else f"{whole.score().rows:,}"
        lines.append(
            f"{start} **{goal.shown(found[goal.who])}** | {goal.shown(found['roofline'])} "
            f"| {goal.shown(found['closed'])} | {rows} "
            f"| {goal.mark(found[goal.who])} |"
        )
    for device, entry in left_out.items():
        mark = "reached" if entry["mean"] <= LEFT_OUT_FRAC else "missed"
        lines.append(
            f"| Training step without {device} | `{STEP}` | mean | {pct(LEFT_OUT_FRAC)} | **{pct(entry['mean'])}** "
            f"| | | {entry['rows']:,} | {mark} |"
        )
    return lines


LEFT_OUT_FRAC = 0.12
"""Mean error on a device whose rows had no part in any fit."""


def _chosen(scored: Sequence[Scored], goal: Goal) -> Scored | None:
    found = [s.take(rows) for s in scored if s.metric == goal.metric and (rows := goal.rows(s)).any()]
    return join(found) if found else None


def summary(scored: Sequence[Scored]) -> str:
    """The short table of the README: medians of orrery and of the two rivals."""
    lines = ["| measured | rows | datasheet roofline | five fitted constants | **orrery** |", "|---|---|---|---|---|"]
    for goal in GOALS:
        is_shown = goal.statistic == ("mean" if goal.metric == STEP else "median") and goal.who == "ours"
        if is_shown and (whole := _chosen(scored, goal)) is not None:
            cells = [pct(whole.score(who).median_abs_error_frac) for who in ("roofline", "closed", "ours")]
            lines.append(
                f"| {goal.name}: `{goal.metric}` | {whole.score().rows:,} | {cells[0]} | {cells[1]} | **{cells[2]}** |"
            )
    return "\n".join(lines)


def pct(value: float) -> str:
    """A share in percent; nothing where there is none."""
    return f"{100 * value:.1f} %" if np.isfinite(value) else ""
