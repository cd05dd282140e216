"""``orrery plan``: the best ways to serve a model."""

from pathlib import Path
from typing import Any

import click

from orrery.cli.options import scenario_flags, scenario_from

EXAMPLES = """\b
Examples:
  orrery plan --model llama-3.1-70b --device h100-sxm --max-devices 8 --trace chat --slo ttft:1000 --slo tpot:50
  orrery plan --model qwen3-32b --device h100-sxm,l40s --rate 4 --input-tokens 1024 --output-tokens 256 --slo tpot:40
  orrery plan --model llama-3.1-70b --device h100-sxm --trace chat --slo p99_ttft:2000 --slo p90_tpot:50 --simulate
  orrery plan --model qwen3-32b --device h100-sxm --input-tokens 4000 --output-tokens 200 --slo tpot:30 --disaggregate
  orrery plan --scenario mine.toml --max-devices 16 --json"""


@click.command("plan", epilog=EXAMPLES)
@click.option(
    "--simulate",
    is_flag=True,
    help="Serve the best plans their traffic step by step; objectives may then be percentiles: p99_ttft:MS.",
)
@click.option(
    "--disaggregate",
    is_flag=True,
    help="Simulate replicas for both phases, split devices, and separate prefill and decode pools; does it pay?",
)
@click.option("--all-plans", is_flag=True, help="Every plan that works, not only the best of each device.")
@scenario_flags("plan")
def command(
    scenario_file: Path | None, save_scenario: Path | None, is_json: bool, simulate: bool, disaggregate: bool,
    all_plans: bool, **flags: Any,
) -> int:  # fmt: skip
    """The best serving configurations of a model on some devices, for your traffic and SLOs.

    Every layout, format and token budget that fits is evaluated; plans are ranked by dollars an hour for the traffic
    (or by throughput), and what was rejected says what is missing.
    """
    scenario = scenario_from(flags, scenario_file, save_scenario)
    if disaggregate:
        if simulate or all_plans:
            raise click.UsageError("--disaggregate simulates and lists every design itself; leave the other out.")
        from orrery.cli.plan_disaggregated import run_disaggregated

        return run_disaggregated(scenario, is_json)
    if simulate:
        from orrery.cli.plan_simulated import run_plan_simulated

        return run_plan_simulated(scenario, is_json)
    from orrery.cli.output import print_json, print_notes
    from orrery.cli.progress import bar
    from orrery.scenario.ask import plan

    with bar("layouts and formats evaluated") as tell:
        answer = plan(scenario, all_plans=all_plans, on_progress=tell)
    if is_json:
        print_json(answer.to_json())
    else:
        from orrery.cli.views import print_plans

        print_plans(answer, is_every=all_plans)
    print_notes(n for n in answer.notes if is_json or not n.startswith("price:"))  # the page has prices already
    return 3 if answer.infeasible else 0
