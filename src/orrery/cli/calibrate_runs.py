"""``orrery calibrate runs``: constants that fit your own measured runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orrery.base.units import percent
from orrery.calibrate.runs.settings import RUN_SETTINGS
from orrery.cli.question import question_flags, settings_from

if TYPE_CHECKING:
    from orrery.calibrate.runs.answer import RunsAnswer
    from orrery.cli.sheet import Sheet

EXAMPLES = """\b
Examples:
  orrery calibrate runs bench/*.json --name my-box --device h100-sxm --engine-version 0.11.0
  orrery calibrate runs guidellm.json --name my-box --device l40s --model llama-3.1-8b --weights fp8 --replace
  orrery calibrate runs before.prom after.prom more/*.prom --name my-box --device h100-sxm --concurrency 32
  orrery calibrate runs logs/*.txt --name my-cluster --device h100-sxm --model llama-3.1-8b --devices 8 --seq-len 8192
Then: orrery estimate --engine my-box.toml … (or --framework my-cluster.toml)"""


@click.command("runs", epilog=EXAMPLES)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option("--name", required=True, metavar="NAME", help="The correction is written to NAME.toml.")
@click.option("--replace", is_flag=True, help="Overwrite NAME.toml where it is there already.")
@question_flags(RUN_SETTINGS)
def command(
    files: tuple[Path, ...],
    name: str,
    replace: bool,
    scenario_file: Path | None,
    save_scenario: Path | None,
    is_json: bool,
    **flags: Any,
) -> int:
    """Correct the few constants that your own runs identify, and check that it helps runs it has not seen.

    FILES are results of vllm bench, sglang.bench_serving, guidellm, AIPerf, genai-perf or llmperf, scrapes of vLLM's
    /metrics, logs of Megatron-LM or torchtitan, or measured tables. What they do not say comes from flags.
    """
    from orrery.calibrate.runs.calibrate import calibrate_runs
    from orrery.cli.output import print_json, print_notes
    from orrery.cli.progress import bar

    user_settings = {key: str(value) for key, value in settings_from(flags, scenario_file).items()}
    if save_scenario:
        _save(save_scenario, user_settings)
    with bar("predictions") as report:
        answer = calibrate_runs(files, name=name, replace=replace, on_progress=report, **user_settings)
    if is_json:
        print_json(answer.to_json())
    else:
        print_runs(answer)
    print_notes(answer.notes)
    return 0 if answer.written else 3


def _save(path: Path, user_settings: dict[str, str]) -> None:
    import tomli_w

    from orrery.base.files import write_atomically

    write_atomically(path, tomli_w.dumps(user_settings))


def print_runs(answer: "RunsAnswer") -> None:
    """Constants, errors before and after, and every measurement beside its predictions."""
    from orrery.cli.output import console

    out, subject = console(), answer.subject
    where = f"written to {answer.written}" if answer.written else "nothing was written"
    out.print(f"[bold]{answer.num_runs} runs of {subject.base} on {subject.device}[/]: {where}")
    out.print(_constants(answer))
    out.print(_errors(answer))
    out.print("measured / predicted of each run, left out, from 1/4 to 4: o shipped, * corrected", markup=False)
    for line in bars(answer, min(out.width, 110)):
        out.print(line, markup=False, highlight=False)


def _constants(answer: "RunsAnswer") -> "Sheet":
    from orrery.base.units import figures
    from orrery.calibrate.runs.answer import NOT_IDENTIFIED
    from orrery.cli.sheet import Sheet

    table = Sheet("constant", "shipped", "corrected", "+-")
    table.add_column("told by the runs", wraps=True)
    table.add_column("needs", justify="left", wraps=True, minor=1)
    for c in answer.constants:
        is_open = c.word == NOT_IDENTIFIED
        table.add_row(
            c.name,
            figures(c.before, 4),
            "stays" if is_open else figures(c.after, 4),
            "" if is_open else percent(c.sd_log),
            c.word,
            c.needs if is_open else "",
            style="dim" if is_open else None,
        )
    return table


def _errors(answer: "RunsAnswer") -> "Sheet":
    from orrery.cli.sheet import Sheet

    table = Sheet("each run left out", "rows", "median", "mean", "p90", "bias")
    for metric, (before, after) in answer.scores.items():
        cells: list[str] = []
        for field in ("median_abs_error_frac", "mean_abs_error_frac", "p90_abs_error_frac", "bias_frac"):
            both = (percent(getattr(one, field), 1, is_signed=field == "bias_frac") for one in (before, after))
            cells.append(" -> ".join(both))
        table.add_row(metric, f"{before.rows}", *cells)
    return table


MAIN = (
    "ttft_s",
    "tpot_s",
    "latency_s",
    "output_tokens_per_s",
    "step_time_s",
    "tokens_per_s_per_device",
    "peak_memory_bytes",
)
MAX_LINES = 24
WIDEST = 4.0
"""A run that is off by more stands at the edge."""


def _main_metrics(answer: "RunsAnswer") -> list[str]:
    """The two metrics that say most of those that were measured."""
    return [m for m in MAIN if m in answer.scores][:2] or list(answer.scores)[:2]


def bars(answer: "RunsAnswer", columns: int) -> list[str]:
    """A line a measurement: where measured over predicted lies between 1/4 and 4, on a logarithmic scale."""
    from math import log

    shown = [p for p in answer.predicted if p.metric in _main_metrics(answer)]
    numbers = {run: i for i, run in enumerate(dict.fromkeys(p.run for p in answer.predicted), start=1)}
    names = [f"run {numbers[p.run]} {p.metric}" for p in shown]
    width = max(20, columns - max(map(len, names)) - 12)
    if width % 2 == 0:
        width -= 1
    lines: list[str] = []
    for name, p in list(zip(names, shown, strict=True))[:MAX_LINES]:
        cells = [" "] * width
        cells[width // 2] = "|"
        for mark, predicted in (("o", p.before), ("*", p.after)):
            place = log(p.measured / predicted) / log(WIDEST)
            cells[round((max(-1.0, min(1.0, place)) + 1) / 2 * (width - 1))] = mark
        lines.append(
            f"{name.ljust(max(map(len, names)))} [{''.join(cells)}] {percent(p.measured / p.after - 1, is_signed=True)}"
        )
    if (more := len(shown) - MAX_LINES) > 0:
        lines.append(f"… {more} more; --json lists every one")
    return lines
