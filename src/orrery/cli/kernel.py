"""``orrery kernel``: one operator on devices, its variants side by side."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from orrery.cli.question import question_flags, settings_from
from orrery.scenario.fields_kernel import KERNEL_SETTINGS, OPERATORS, SWEEP

_LONGEST = max(map(len, OPERATORS))
EPILOG = (
    "\b\nOperators and their sizes:\n"
    + "\n".join(f"  {name:<{_LONGEST}}  {line}" for name, line in OPERATORS.items())
    + """

\b
Examples:
  orrery kernel gemm --device h100-sxm,mi300x --m 4096 --n 4096 --k 4096 --format bf16,fp8
  orrery kernel gemm --device l40s --n 8192 --k 8192 --weights int5/128:fp16 --sweep m=1:256:x2 --out gemm.svg
  orrery kernel attention --device h100-sxm --query-tokens 8192 --num-heads 16 --variant serial,ping-pong
  orrery kernel all-to-all --device h100-sxm --message-bytes 64MiB --fabric leaf-spine --leaves 8 --spines 4 \\
    --hosts-per-leaf 4"""
)

SUFFIXES = (".json", ".csv", ".svg")


@click.command("kernel", epilog=EPILOG)
@click.argument("operator", metavar="[OP]", required=False)
@click.option(SWEEP.flag, SWEEP.name, multiple=True, metavar=SWEEP.metavar, help=SWEEP.help)
@question_flags(KERNEL_SETTINGS)
@click.option(
    "--out",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the rows to .csv, the answer to .json, or the curves of a sweep to .svg.",
)
@click.option("--formats", "formats", hidden=True)
@click.option("--hidden", "hidden", hidden=True)
@click.option("--variants", "variants", hidden=True)
def command(
    operator: str | None,
    sweep: tuple[str, ...],
    scenario_file: Path | None,
    save_scenario: Path | None,
    is_json: bool,
    out: tuple[Path, ...],
    **flags: Any,
) -> None:
    """One operator on one or several devices: time with interval, what binds it, and its variants side by side."""
    _check_suffixes(out)
    settings = settings_from({**flags, "sweep": list(sweep) or None, "op": operator}, scenario_file)
    from orrery.calibrate.kernel import kernel
    from orrery.cli.kernel_views import print_kernel, write_kernel
    from orrery.cli.output import print_json, print_notes
    from orrery.scenario.kernel.run import read_kernel

    if save_scenario:
        read_kernel(settings).save(save_scenario)
    answer = kernel(**settings)
    for path in out:
        write_kernel(answer, path)
    if is_json:
        print_json(answer.to_json())
    else:
        print_kernel(answer, requested=_requested(settings))
    print_notes(answer.notes)


def _requested(settings: dict[str, Any]) -> bool:
    """Whether variants were named: what of them cannot run is then told one by one."""
    return bool(settings.get("variant") or settings.get("variants"))


def _check_suffixes(out: Sequence[Path]) -> None:
    from orrery.base.errors import ScenarioError

    for path in out:
        if path.suffix.casefold() not in SUFFIXES:
            raise ScenarioError(f"out: {path.name!r} does not say what to write; end it in {', '.join(SUFFIXES)}.")
        if not path.parent.is_dir():
            raise ScenarioError(f"out: there is no folder {path.parent}; make it, or write elsewhere.")
