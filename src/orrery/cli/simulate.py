"""``orrery simulate``: requests served step by step, as a real engine would."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from orrery.cli.options import on_ray, scenario_flags, scenario_from
from orrery.cli.report_file import ONLY_SERVING, check_report, with_report, write_report

EXAMPLES = """\b
Examples:
  orrery simulate --model llama-3.1-8b --device h100-sxm --rate 10 --input-tokens 1000 --output-tokens 200
  orrery simulate --model llama-3.1-70b --device h100-sxm --tp 4 --concurrency 64 --input-tokens 2000
      --output-tokens 300 --slo ttft:1000 --slo tpot:50 --out run.html
  orrery simulate --model llama-3.1-8b --device h100-sxm --trace chat --replicas 4 --router prefix-aware --json
  orrery simulate --model llama-3.1-8b --device h100-sxm --trace chat --slo ttft:500 --find-capacity
  orrery simulate --model llama-3.1-8b --device h100-sxm --trace chat --sweep tp=1,2 --sweep rate=5,10 --out all.html"""


@click.command("simulate", epilog=EXAMPLES)
@click.option(
    "--find-capacity",
    is_flag=True,
    help="The highest rate at which enough requests meet the objectives (without any: that is sustained).",
)
@click.option(
    "--sweep",
    "over",
    metavar="KEY=V1,V2,…",
    multiple=True,
    help="Simulate with each of these values of a setting or knob; repeat for a grid.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 4096),
    metavar="N",
    help="Processes of a sweep (default: one for each core, where that is worth it).",
)
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep a sweep's finished runs in this folder, and go on where an earlier sweep ended.",
)
@click.option(
    "--carry-over",
    is_flag=True,
    help="With --sweep device=a,b and others: each device's best settings on the other ones, and what tuning again "
    "gains.",
)
@on_ray
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    multiple=True,
    help="Write the run: .parquet, .csv, .json, .html (a report) or .trace.json (a timeline); of a sweep, a "
    "row a run. Repeat for more.",
)
@with_report
@click.option("--window", metavar="START:END", help="Seconds of the run to keep step by step, for .trace.json.")
@scenario_flags("simulate")
def command(
    scenario_file: Path | None,
    save_scenario: Path | None,
    is_json: bool,
    out: tuple[Path, ...],
    window: str | None,
    find_capacity: bool,
    over: tuple[str, ...],
    jobs: int | None,
    resume: Path | None,
    carry_over: bool,
    ray: str,
    report: Path | None,
    **flags: Any,
) -> int:
    """Serve requests step by step: latencies with percentiles, queues, cache, energy and money."""
    for name, given in (("--jobs", jobs), ("--resume", resume), ("--carry-over", carry_over), ("--ray", ray)):
        if given and not over:
            raise click.UsageError(f"{name} is about sweeps; write --sweep KEY=V1,V2 beside it.")
    if window is not None and (over or find_capacity):
        raise click.UsageError("--window is about one run; leave out --sweep and --find-capacity.")
    check_report(report, scenario_file)
    scenario = scenario_from(flags, scenario_file, save_scenario)
    if over:
        from orrery.cli.sweep import run_sweep

        return run_sweep(
            scenario,
            over,
            is_json,
            out,
            jobs=jobs or 0,
            finds_capacity=find_capacity,
            carry_over=carry_over,
            resume=resume,
            ray=ray,
            report=report,
        )
    from orrery.cli.simulate_report import check_suffix

    for path in out:
        check_suffix(path)
    if find_capacity:
        from orrery.cli.capacity import run_capacity

        return run_capacity(scenario, is_json, out, report)
    return _run_once(scenario, is_json, out, _window(window, out), report)


def _run_once(
    scenario: Any, is_json: bool, out: tuple[Path, ...], window: tuple[float, float] | None, report: Path | None
) -> int:
    """One run: simulate, write, print."""
    from orrery.cli.output import print_infeasible, print_json, print_notes
    from orrery.cli.progress import patience
    from orrery.cli.simulate_report import write_result
    from orrery.scenario.ask import InfeasibleAnswer
    from orrery.scenario.composition import CompositionAnswer
    from orrery.scenario.host_attention import HostAttentionAnswer
    from orrery.scenario.simulations import simulate

    with ExitStack() as stack:
        answer = simulate(scenario, window=window, patience=patience(), watch=_watch(stack))
    if isinstance(answer, (HostAttentionAnswer, CompositionAnswer)):
        check_report(report, refused=ONLY_SERVING)
        return _print_apart(answer, is_json, out)
    plain = answer.to_json()
    write_report(report, "simulate", scenario, plain)
    if isinstance(answer, InfeasibleAnswer):
        return print_infeasible(answer, is_json)
    for path in out:
        write_result(answer.simulated, plain, path)
    if is_json:
        print_json(plain)
    else:
        from orrery.cli.serving_result import print_serving_result

        print_serving_result(plain)
    print_notes(answer.notes)
    return 0


def _print_apart(answer: Any, is_json: bool, out: tuple[Path, ...]) -> int:
    """A run that is no sequence of an engine's steps: its cache is the host's, or many models take turns."""
    from orrery.cli.composition_views import print_composition
    from orrery.cli.host_attention_views import print_host_attention
    from orrery.cli.output import print_json, print_notes
    from orrery.scenario.composition import CompositionAnswer

    if out:
        raise click.UsageError("--out: a run with host-attention or a composition has one row; write --json.")
    if is_json:
        print_json(answer.to_json())
    elif isinstance(answer, CompositionAnswer):
        print_composition(answer)
    else:
        print_host_attention(answer)
    print_notes(answer.notes)
    return 0


def _watch(stack: ExitStack) -> Any:
    """Return an observer that shows how far a run is: from when its requests are known until it is simulated."""
    from multiprocessing import RawArray

    import numpy as np

    from orrery.cli.progress import counted
    from orrery.scenario.simulate import NUM_COUNTS, SERVED, RunObserver

    shared = RawArray("q", NUM_COUNTS)

    def on_phase(phase: str, num_requests: int, num_tokens: int) -> None:
        if phase == "simulating":
            stack.enter_context(counted(shared, SERVED, num_requests, num_tokens))
        else:
            stack.close()

    return RunObserver(counts=np.frombuffer(shared, dtype=np.int64), on_phase=on_phase)


def _window(text: str | None, out: tuple[Path, ...]) -> tuple[float, float] | None:
    """The part of the run that is kept step by step: what was asked, or the first minute where a trace is written."""
    from orrery.scenario.simulate import read_window

    if text is None:
        return (0.0, 60.0) if any(p.name.endswith((".trace.json", ".perfetto.json")) for p in out) else None
    return read_window(text)
