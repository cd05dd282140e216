"""``orrery cache-size``: how much cache the turns of agents need."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orrery.base.units import percent
from orrery.cli.options import scenario_flags, scenario_from

if TYPE_CHECKING:
    from orrery.scenario.cache_size import CacheSize

EXAMPLES = """\b
Examples:
  orrery cache-size --model qwen3-32b --device h100-sxm --tp 4 --sessions example-agents --sessions-per-hour 100
  orrery cache-size --model qwen3-32b --device h100-sxm --tp 4 --sessions sessions.csv --sessions-per-hour 30
  orrery cache-size --model llama-3.1-70b --device h100-sxm --tp 8 --trace mooncake_conversation.jsonl.gz
  orrery cache-size --scenario agents.toml --host-cache-bytes 1TB --nvme-cache-bytes 8TB --cache-hit 0.99 --json"""


@click.command("cache-size", epilog=EXAMPLES)
@scenario_flags("cache-size")
def command(scenario_file: Path | None, save_scenario: Path | None, is_json: bool, **flags: Any) -> int:
    """Agents: how much cache makes their turns hit on one replica, tier by tier, and what a task computes."""
    scenario = scenario_from(flags, scenario_file, save_scenario)
    from orrery.cli.output import print_infeasible, print_json, print_notes
    from orrery.scenario.ask import InfeasibleAnswer
    from orrery.scenario.cache_size import cache_size

    answer = cache_size(scenario)
    if isinstance(answer, InfeasibleAnswer):
        return print_infeasible(answer, is_json)
    if is_json:
        print_json(answer.to_json())
    else:
        print_cache_size(answer)
    print_notes(answer.notes)
    return 0


def print_cache_size(answer: "CacheSize") -> None:
    """The sessions, the size, the curve, tiers, and a task."""
    from orrery.base.units import figures, text
    from orrery.cli.output import console
    from orrery.cli.sheet import Sheet

    out, shape, task = console(), answer.shape, answer.task
    out.print(
        f"{shape.num_turns:,} requests, prompts of {shape.input_p50_tokens:,.0f} tokens (p99 "
        f"{shape.input_p99_tokens:,.0f}); {percent(shape.shared_frac, 1)} of all input was there before."
        if shape.num_sessions == shape.num_turns
        else f"{shape.num_sessions:,} sessions of {shape.turns_per_session_p50} turns (median), prompts of "
        f"{shape.input_p50_tokens:,.0f} tokens (p99 {shape.input_p99_tokens:,.0f}), {shape.growth_mean_tokens:,.0f} "
        f"more a turn; {percent(shape.compacted_frac, 1)} of the turns begin anew; pauses of "
        f"{text(shape.think_p50_s, 's')} (p90 {text(shape.think_p90_s, 's')}); {percent(shape.shared_frac, 1)} of "
        "all input was there before."
    )
    out.print(
        f"[bold]{percent(answer.cache_hit_frac)} of the turns find all of it[/] with "
        f"{figures(answer.needed_tokens, 4)} tokens of cache: {text(answer.needed_bytes, 'bytes')}."
    )
    curve = Sheet("cache", "tokens", "turns that hit", "tokens that hit", title="Cache of one replica", left=0)
    for tokens, turns_frac, tokens_frac in answer.curve:
        size = text(tokens * answer.token_bytes, "bytes")
        curve.add_row(size, figures(tokens, 3), percent(turns_frac, 1), percent(tokens_frac, 1))
    out.print(curve)
    tiers = Sheet(
        "tier", "size", "turns that hit", "tokens that hit", "loading a turn", title="Tiers, each with those above"
    )
    for tier in answer.tiers:
        load = text(tier.load_s, "s") if tier.bytes_per_s else ""
        tiers.add_row(
            tier.name,
            text(tier.size_bytes, "bytes"),
            percent(tier.turns_frac, 1),
            percent(tier.tokens_frac, 1),
            load,
        )
    out.print(tiers)
    shares = ", ".join(f"{percent(share, 1)} within {text(s, 's')}" for s, share in answer.returning)
    out.print(f"Turns come back after what they share was last used: {shares}.")
    usd = "" if task.prefill_usd is None else f", ${figures(task.prefill_usd)}"
    out.print(
        f"A task: {figures(task.turns_ratio)} turns, {figures(task.input_tokens, 3)} input tokens, of which "
        f"{figures(task.computed_tokens, 3)} are computed ({text(task.prefill_s, 's')} of the replica{usd}; the cache "
        f"saves {text(task.saved_s, 's')}), {figures(task.output_tokens, 3)} output tokens, "
        f"{text(task.think_s, 's')} of pauses."
    )
