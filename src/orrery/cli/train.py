"""``orrery train``: one training configuration, or with ``--plan`` the best ones."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orrery.base.errors import ScenarioError
from orrery.cli.options import in_jobs, on_ray, scenario_flags, scenario_from, typed_flags
from orrery.cli.report_file import check_report, with_report, write_report

if TYPE_CHECKING:
    from orrery.scenario.schema import Scenario
    from orrery.scenario.show import Table
    from orrery.scenario.train import TrainAnswer
    from orrery.scenario.train_offload import OffloadAnswer

EXAMPLES = """\b
Examples:
  orrery train --model llama-3.1-8b --device h100-sxm --devices 8 --global-batch 128 --seq-len 8192 --sharding fsdp
  orrery train --model gpt3-175b --device h100-sxm --devices 1024 --tp 8 --pp 8 --global-batch 1024 --seq-len 2048
  orrery train --model gpt3-175b --device h100-sxm --devices 4096 --global-batch 4096 --seq-len 2048 --plan
  orrery train --model llama-3.1-8b --device l40s --devices 1 --global-batch 8 --seq-len 2048 --offload zero-offload
  orrery train --rl --model qwen3-8b --device h100-sxm --devices 16 --prompts-per-step 64 --generations-per-prompt 8 \\
      --output-tokens 2048
  orrery train --scenario job.toml --train-tokens 15e12 --node-mtbf-s 2e8 --checkpoint lazy --json"""


ONLY_TRAINING = "is of a training job of one model; leave --rl and --graph out."


@click.command("train", epilog=EXAMPLES)
@click.option("--plan", "is_plan", is_flag=True, help="Search everything that is left open for the fastest layouts.")
@click.option(
    "--timeline",
    type=click.Path(path_type=Path),
    metavar="FILE.json",
    help="Write one step of the pipeline as a trace for ui.perfetto.dev or chrome://tracing.",
)
@with_report
@in_jobs
@on_ray
@scenario_flags("train")
def command(
    scenario_file: Path | None,
    save_scenario: Path | None,
    is_json: bool,
    is_plan: bool,
    timeline: Path | None,
    jobs: int,
    ray: str,
    report: Path | None,
    **flags: Any,
) -> int:
    """Training: step time by part, utilisation, memory by rank, energy, money, and days to so many tokens.

    With --plan every layout flag and --micro-batch are optional, and what is left open is searched exhaustively.
    """
    scenario = scenario_from(flags, scenario_file, save_scenario)
    from orrery.cli.output import print_infeasible, print_json, print_notes
    from orrery.scenario.ask import InfeasibleAnswer

    if (jobs > 1 or ray) and (not is_plan or scenario.rl):
        raise click.UsageError("--jobs and --ray share out the search of --plan; leave them out.")
    check_report(report, scenario_file, refused=ONLY_TRAINING if scenario.rl or scenario.graph is not None else "")
    if scenario.rl:
        from orrery.cli.train_rl import answer_rl

        if timeline is not None:
            raise ScenarioError("timeline: is of one training step; leave --rl out, or --timeline.")
        return answer_rl(scenario, is_plan=is_plan, is_json=is_json)
    if scenario.graph is not None:
        return _answer_graph(scenario, is_json=is_json, is_plan=is_plan)
    from orrery.scenario.rl_job import check_is_no_rl

    check_is_no_rl(scenario, typed_flags(flags))
    if timeline is not None:
        _check_timeline(scenario, timeline, is_plan)
    if is_plan:
        from orrery.cli.progress import bar
        from orrery.scenario.train_plan import train_plan

        with bar("families of layouts") as tell:
            answer = train_plan(scenario, progress=tell, jobs=jobs, ray=ray)
        write_report(report, "train-plan", scenario, answer=answer)
        if is_json:
            print_json(answer.to_json())
        else:
            from orrery.cli.train_views import print_train_plan

            print_train_plan(answer)
        print_notes(answer.notes)
        return 3 if answer.infeasible else 0
    from orrery.scenario.train import train

    one = train(scenario)
    write_report(report, "train", scenario, answer=one)
    if isinstance(one, InfeasibleAnswer):
        _print_tables(() if is_json else one.tables)
        return print_infeasible(one, is_json)
    if is_json:
        print_json(one.to_json())
    else:
        _print(one)
    print_notes(one.notes)
    if timeline is not None:
        _write_timeline(one, timeline)
    return 0


def _print(one: "TrainAnswer | OffloadAnswer") -> None:
    from orrery.scenario.train_offload import OffloadAnswer

    if isinstance(one, OffloadAnswer):
        from orrery.cli.train_offload_views import print_offload

        print_offload(one)
        return
    from orrery.cli.train_views import print_train

    print_train(one)


def _answer_graph(scenario: "Scenario", *, is_json: bool, is_plan: bool) -> int:
    from orrery.cli.output import console, print_json, print_notes
    from orrery.scenario.train_graph import train_graph

    if is_plan:
        raise ScenarioError("graph: all ways of sharing it are compared anyway; leave --plan out.")
    answer = train_graph(scenario)
    if is_json:
        print_json(answer.to_json())
    else:
        console().print(
            f"{answer.num_vertices:,} vertices, {answer.num_edges:,} messages a layer; by {answer.graph_parallel}:"
        )
        _print_tables(answer.tables)
    print_notes(answer.notes)
    return 0


def _print_tables(tables: "tuple[Table, ...]") -> None:
    if tables:
        from orrery.cli.tables import print_facts

        for table in tables:
            print_facts(table)


def _check_timeline(scenario: "Scenario", path: Path, is_plan: bool) -> None:
    if is_plan:
        raise ScenarioError("timeline: is of one layout; leave --plan out, or --timeline.")
    from orrery.scenario.train_timeline import check_timeline

    check_timeline(scenario, path)


def _write_timeline(one: "TrainAnswer | OffloadAnswer", path: Path) -> None:
    from orrery.cli.output import print_notes
    from orrery.scenario.train_timeline import played_step, write_timeline

    step = played_step(one.job, one.layout)
    write_timeline(step, path)
    print_notes((*step.notes, f"timeline: {path}, of {step.timeline.makespan_s:.4g} s; open it in ui.perfetto.dev"))
