"""``orrery plan``: the best ways to serve a model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from orrery.cli.options import in_jobs, on_ray, scenario_flags, scenario_from
from orrery.cli.report_file import check_report, with_report, write_report

EXAMPLES = """\b
Examples:
  orrery plan --model llama-3.1-70b --device h100-sxm --max-devices 8 --trace chat --slo ttft:1000 --slo tpot:50
  orrery plan --model qwen3-32b --device h100-sxm,l40s --rate 4 --input-tokens 1024 --output-tokens 256 --slo tpot:40
  orrery plan --model llama-3.1-70b --device h100-sxm --trace chat --slo p99_ttft:2000 --slo p90_tpot:50 --simulate
  orrery plan --model qwen3-32b --device h100-sxm --input-tokens 4000 --output-tokens 200 --slo tpot:30 --disaggregate
  orrery plan --model llama-3.3-70b --device h100-sxm --trace chat --api-price deepinfra/llama-3.3-70b --buy-usd 35000
  orrery plan --model llama-3.1-8b --device l4,a10g,a100-sxm-80gb,h100-sxm --trace chat --slo tpot:100 --mix
  orrery plan --model qwen3-32b --device h100-sxm --trace chat --slo tpot:40 --manifest kubernetes,slurm --out deploy
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
@click.option(
    "--mix",
    is_flag=True,
    help="The cheapest mix of the devices for a trace: its requests cut into sizes, each served where it costs least.",
)
@click.option(
    "--manifest",
    metavar="NAME[,NAME]",
    help="Files that start the best plan: kubernetes (with an HPA), keda, kserve, llm-d, dynamo, ray, slurm.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder that --manifest writes to (default: print them).",
)
@click.option("--all-plans", is_flag=True, help="Every plan that works, not only the best of each device.")
@with_report
@in_jobs
@on_ray
@scenario_flags("plan")
def command(
    scenario_file: Path | None,
    save_scenario: Path | None,
    is_json: bool,
    simulate: bool,
    disaggregate: bool,
    mix: bool,
    manifest: str | None,
    out: Path | None,
    all_plans: bool,
    jobs: int,
    ray: str,
    report: Path | None,
    **flags: Any,
) -> int:
    """The best serving configurations of a model on some devices, for your traffic and SLOs.

    Every layout, format and token budget that fits is evaluated; plans are ranked by dollars an hour for the traffic
    (or by throughput), and what was rejected says what is missing.
    """
    check_report(
        report, scenario_file, refused="is of plans; leave --mix and --disaggregate out." if mix or disaggregate else ""
    )
    scenario = scenario_from(flags, scenario_file, save_scenario)
    if manifest and (mix or disaggregate or simulate):
        raise click.UsageError("--manifest starts a plan of the closed form; leave --mix, --disaggregate, --simulate.")
    if out and not manifest:
        raise click.UsageError("--out is the folder of --manifest; write --manifest kubernetes, say.")
    if (jobs > 1 or ray) and (mix or disaggregate or simulate):
        raise click.UsageError("--jobs and --ray search the closed form; leave --mix, --disaggregate, --simulate.")
    if mix:
        if simulate or disaggregate or all_plans:
            raise click.UsageError("--mix answers one question of its own; leave the other out.")
        from orrery.cli.plan_mix import run_mix

        return run_mix(scenario, is_json)
    if disaggregate:
        if simulate or all_plans:
            raise click.UsageError("--disaggregate simulates and lists every design itself; leave the other out.")
        from orrery.cli.plan_disaggregated import run_disaggregated

        return run_disaggregated(scenario, is_json)
    if simulate:
        from orrery.cli.plan_simulated import run_plan_simulated

        return run_plan_simulated(scenario, is_json, report)
    from orrery.cli.output import print_json, print_notes
    from orrery.cli.progress import bar
    from orrery.scenario.ask import plan

    with bar("layouts and formats evaluated") as tell:
        answer = plan(scenario, all_plans=all_plans, on_progress=tell, jobs=jobs, ray=ray)
    write_report(report, "plan", scenario, answer=None if all_plans else answer)
    files: Mapping[str, str] = {}
    deploy_notes: tuple[str, ...] = ()
    if manifest and not answer.infeasible:
        from orrery.scenario.deploy import deploy_files

        files, deploy_notes = deploy_files(answer, manifest)
        _write(files, out)
    if is_json:
        print_json(answer.to_json() | ({"manifests": files} if files else {}))
    else:
        from orrery.cli.views import print_plans

        print_plans(answer, is_every=all_plans)
        if answer.power_row:
            from orrery.cli.power_views import print_power_row

            print_power_row(answer.power_row)
        if answer.money:
            from orrery.cli.money_views import print_money

            print_money(answer.money)
        for name, text in files.items() if not out else ():
            print(f"# {name}\n{text}")
    print_notes(deploy_notes)
    print_notes(n for n in answer.notes if is_json or not n.startswith("price:"))  # the page has prices already
    return 3 if answer.infeasible else 0


def _write(files: Mapping[str, str], out: Path | None) -> None:
    """Write the files to a folder, which is made where it is not there."""
    if out is None:
        return
    out.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (out / name).write_text(text, encoding="utf-8")
