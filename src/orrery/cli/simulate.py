"""``orrery simulate``: requests served step by step, as a real engine would."""

from pathlib import Path
from typing import Any

import click

from orrery.cli.options import scenario_flags, scenario_from

EXAMPLES = """\b
Examples:
  orrery simulate --model llama-3.1-8b --device h100-sxm --rate 10 --input-tokens 1000 --output-tokens 200
  orrery simulate --model llama-3.1-70b --device h100-sxm --tp 4 --concurrency 64 --input-tokens 2000
      --output-tokens 300 --slo ttft:1000 --slo tpot:50 --out run.html
  orrery simulate --model llama-3.1-8b --device h100-sxm --trace chat --replicas 4 --router prefix-aware --json"""


@click.command("simulate", epilog=EXAMPLES)
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", multiple=True,
              help="Write the run: .parquet, .csv, .json, .html (a report) or .trace.json (a timeline); repeat for more.")
@click.option("--window", metavar="START:END", help="Seconds of the run to keep step by step, for .trace.json.")
@scenario_flags("simulate")
def COMMAND(  # noqa: N802 - the seam that main looks for
    scenario_file: Path | None, save_scenario: Path | None, is_json: bool, out: tuple[Path, ...], window: str | None,
    **flags: Any,
) -> int:  # fmt: skip
    """Serve requests step by step: latencies with percentiles, queues, cache, energy and money."""
    scenario = scenario_from(flags, scenario_file, save_scenario)
    from orrery.cli.output import print_infeasible, print_json, print_notes
    from orrery.cli.simulate_report import check_suffix, write_result
    from orrery.scenario.ask import CannotBe
    from orrery.scenario.simulate import simulate

    for path in out:
        check_suffix(path)
    answer = simulate(scenario, window=_window(window, out))
    if isinstance(answer, CannotBe):
        return print_infeasible(answer, is_json)
    plain = answer.to_json()
    for path in out:
        write_result(answer.simulated, plain, path)
    if is_json:
        print_json(plain)
    else:
        from orrery.cli.serving_result import print_serving_result

        print_serving_result(plain)
    print_notes(answer.notes)
    return 0


def _window(text: str | None, out: tuple[Path, ...]) -> tuple[float, float] | None:
    """The part of the run that is kept step by step: what was asked, or the first minute where a trace is written."""
    from orrery.base.errors import ScenarioError

    if text is None:
        return (0.0, 60.0) if any(p.name.endswith((".trace.json", ".perfetto.json")) for p in out) else None
    start, colon, end = text.partition(":")
    try:
        found = float(start or 0), float(end)
    except ValueError:
        found = (1.0, 0.0)
    if not colon or not 0 <= found[0] < found[1] < float("inf"):
        raise ScenarioError(f"window: got {text!r}; write START:END in seconds, such as 10:20.")
    return found
