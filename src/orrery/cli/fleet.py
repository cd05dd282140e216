"""``orrery fleet``: a whole service over days, with replicas that start, stop and fail."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from orrery.cli.options import as_json, in_jobs, on_ray, setting_flags, typed_flags
from orrery.cli.report_file import check_report, with_report, write_made
from orrery.scenario.fields import SETTINGS
from orrery.scenario.fields_fleet import FLEET_SETTINGS

EXAMPLES = """\b
Examples:
  orrery fleet FLEET.toml --out day.svg --report day.html
  orrery fleet --model llama-3.1-8b --device h100-sxm --rate 20 --input-tokens 1000 --output-tokens 200 --days 1
      --rate-curve diurnal --replicas-min 1 --replicas-max 6 --autoscaler hpa --slo p99_ttft:2000
  orrery fleet FLEET.toml --autoscaler knative-concurrency --autoscaler-knob target_requests=40 --json"""

SUFFIXES = (".json", ".csv", ".svg")
OF_FLEET = frozenset({"simulate", "fleet"})
CLOSED = frozenset({"batch", "concurrency", "users", "think_s"})
"""Settings of closed loops: a fleet takes arrivals."""


def _deployment_flags(function: Any) -> Any:
    return setting_flags(function, [s for s in SETTINGS if s.commands & OF_FLEET and s.name not in CLOSED])


def _fleet_flags(function: Any) -> Any:
    return setting_flags(function, FLEET_SETTINGS)


@click.command("fleet", epilog=EXAMPLES)
@click.argument("file", metavar="[FLEET.toml]", required=False, type=click.Path(path_type=Path))
@click.option("--csv", "is_csv", is_flag=True, help="The curves over the run as CSV on standard output.")
@click.option(
    "--out",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the answer to .json, the curves to .csv, or the pictures of the run to .svg; repeat for more.",
)
@with_report
@in_jobs
@on_ray
@as_json
@_fleet_flags
@_deployment_flags
def command(
    file: Path | None,
    is_csv: bool,
    out: tuple[Path, ...],
    report: Path | None,
    jobs: int,
    ray: str,
    is_json: bool,
    **flags: Any,
) -> int:
    """Serve traffic over days: replicas that start, stop and fail; cost, energy, SLO attainment, missed requests."""
    _check_suffixes(out)
    check_report(report, file)
    if is_csv and is_json:
        raise click.UsageError("--csv and --json both write to standard output; keep one, or use --out.")
    from orrery.cli.fleet_views import print_fleet, series_csv, write_fleet
    from orrery.cli.output import print_infeasible, print_json, print_notes
    from orrery.cli.progress import patience
    from orrery.scenario.ask import InfeasibleAnswer
    from orrery.scenario.fleet.answer import FleetAnswer
    from orrery.scenario.fleet.ask import simulate_fleet

    answer = simulate_fleet(file, patience=patience(), jobs=jobs, ray=ray, **typed_flags(flags))
    if isinstance(answer, InfeasibleAnswer):
        return print_infeasible(answer, is_json)
    if not isinstance(answer, FleetAnswer):
        _report_other(answer, report)
        return _print_other(answer, out, is_csv, is_json)
    if report is not None:
        from orrery.reports.fleet import fleet_report

        write_made(report, fleet_report(answer))
    for path in out:
        write_fleet(answer, path)
    if is_json:
        print_json(answer.to_json())
    elif is_csv:
        print(series_csv(answer), end="")
    else:
        print_fleet(answer)
    print_notes(answer.notes)
    return 0


def _report_other(answer: Any, report: Path | None) -> None:
    """Write the report of several services; other answers have none."""
    if report is None:
        return
    from orrery.reports.fleet_services import services_report
    from orrery.scenario.fleet.mixed import MixedAnswer
    from orrery.scenario.fleet.services import ServicesAnswer

    if isinstance(answer, ServicesAnswer | MixedAnswer):
        write_made(report, services_report(answer))
    else:
        check_report(
            report, refused="is of simulated services; leave out steady, survive, oversubscribe, graph and owned."
        )


def _print_other(answer: Any, out: tuple[Path, ...], is_csv: bool, is_json: bool) -> int:
    """Print several services, steady hours, or the size that survives a loss; they are written to .json."""
    from orrery.base.errors import ScenarioError
    from orrery.cli.fleet_more_views import print_more, write_json
    from orrery.cli.output import print_json, print_notes

    if is_csv or any(path.suffix.casefold() != ".json" for path in out):
        raise ScenarioError(
            "out: steady hours, survival and several services go to .json; curves are of one simulated service."
        )
    for path in out:
        write_json(answer, path)
    if is_json:
        print_json(answer.to_json())
    else:
        print_more(answer)
    print_notes(answer.notes)
    return 0


def _check_suffixes(out: Sequence[Path]) -> None:
    from orrery.base.errors import ScenarioError

    for path in out:
        if path.suffix.casefold() not in SUFFIXES:
            raise ScenarioError(f"out: {path.name!r} does not say what to write; end it in {', '.join(SUFFIXES)}.")
        if not path.parent.is_dir():
            raise ScenarioError(f"out: there is no folder {path.parent}; make it, or write elsewhere.")
