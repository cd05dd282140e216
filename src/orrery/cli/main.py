"""``orrery``: the terminal window. Commands are imported when they are called, so that help is instant."""

import io
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from orrery import __version__
from orrery.base.errors import OrreryError
from orrery.cli.in_flags import in_flags
from orrery.cli.lazy import LazyGroup
from orrery.scenario.jobs import JOBS
from orrery.scenario.names import hint

DONE, BAD_INPUT, INFEASIBLE, INTERRUPTED, BROKEN_PIPE = 0, 2, 3, 130, 141
"""Exit codes; the last two are 128 + the signal, as shells expect."""

COMMANDS: dict[str, str] = {
    "estimate": "One configuration: how fast, how much memory, energy and money, and what limits it.",
    "simulate": "Requests served step by step: percentiles, queues, cache, energy and money.",
    "fleet": "A whole service over days: replicas that start, stop and fail; cost, energy, attainment.",
    "emulate": "An OpenAI-compatible server with the timing of a deployment that need not exist.",
    "web": "Everything in a browser: plans, designs side by side, runs, papers.",
    "report": "One file for a decision maker: the result, its uncertainty, what would change it.",
    "plan": "The best serving configurations of a model on some devices, for your traffic and SLOs.",
    "cold-start": "How long until a new replica serves, and what of it takes longest.",
    "cache-size": "Agents: how much cache makes their turns hit, tier by tier, and what a task computes.",
    "shift": "Batch work moved to cheap or clean hours, beside a service, within the limit of its row.",
    "split": "One network over a device, a link and a server: the best cut at each link rate.",
    "train": "Training: step time, memory, energy, money; with --plan the best layout, searched exhaustively.",
    "what-if": "What a technique would do to your deployment: without it, with it, from where it helps; --all ranks.",
    "compare": "Designs side by side: figures, and how far each is from the first, with errors of both cancelled.",
    "experiment": "Small networks and predictors, trained here: what a format costs, what can be learned of speed.",
    "scaling": "Scaling laws of low-precision training: loss, best split of a width, critical data, best width.",
    "bits": "A number format for each layer: least perturbation under limits on latency, size and energy.",
    "search": "Networks out of a space, one for each device: best within limits, with a front, proven or over seeds.",
    "kernel": "One operator on devices: time with interval, what binds it, and its variants side by side.",
    "why": "Explain one number of an estimate down to the facts it came from.",
    "formats": "Number formats: what they hold, what they keep of a signal, how fast they run on a device.",
    "quantize": "Tensors rounded to number formats and back: bits, bytes and signal lost.",
    "show": "What is known: devices, models, formats, techniques, engines, frameworks, recipes, prices, …",
    "calibrate": "Make answers fit your own machine and your own runs, from a handful of measurements.",
    "check": "Score tables of measured runs against the model.",
    "reproduce": "Papers' claims, predicted here and now: reported, verdict, and why.",
    "papers": "The papers behind it all: find them, read them, and watch for new ones.",
}
"""Name -> the line in the list of commands; each lives in ``orrery.cli.<name>``."""


class Commands(LazyGroup):
    """Modules of this folder."""

    lines, module = COMMANDS, "orrery.cli."

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_commands(ctx, formatter)
        with formatter.section("Questions"):
            formatter.write_dl([(job.question, f"{job.command} (docs/{job.page})") for job in JOBS])


EXAMPLES = """\b
Examples:
  orrery plan --model llama-3.1-70b --device h100-sxm --max-devices 8 --trace chat --slo ttft:1000 --slo tpot:50
  orrery estimate --model llama-3.1-8b --device h100-sxm --input-tokens 1024 --output-tokens 256 --concurrency 32
  orrery show devices"""


@click.command(
    cls=Commands,
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="orrery")
def cli() -> None:
    """A working model of AI compute: speed, memory, energy and money of a model on devices you need not own."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit: 0 done, 2 bad input, 3 infeasible."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started it
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - to the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without a letter gets a question mark, not a crash
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """The exit code of a command line; whatever is the input's fault becomes one message."""
    try:
        code = cli.main(args=list(arguments), prog_name="orrery", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else DONE
    except BrokenPipeError:
        _hang_up()
        return BROKEN_PIPE
    except (KeyboardInterrupt, click.Abort):
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED
    except click.NoSuchOption as error:
        return _refuse(arguments, "usage", _no_such(error))
    except click.ClickException as error:
        return _refuse(arguments, "usage", error.format_message())
    except OrreryError as error:
        return _refuse(arguments, type(error).__name__, in_flags(str(error), cli, arguments))
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        return _refuse(arguments, "OSError", f"{named}{error.strerror or error}.")
    except RecursionError:
        return _refuse(arguments, "RecursionError", "The input is nested too deeply to be read.")


def _no_such(error: click.NoSuchOption) -> str:
    """Suggestions for an unknown flag: near in meaning, then in spelling."""
    params = error.ctx.command.params if error.ctx else ()
    name = error.option_name.lstrip("-").replace("-", "_")
    argument = next((p for p in params if isinstance(p, click.Argument) and p.name == name), None)
    if error.ctx and argument:
        return f"There is no flag {error.option_name}; write {argument.make_metavar(error.ctx)} without it; see --help."
    known = [o.removeprefix("--").replace("-", "_") for p in params for o in p.opts]
    near = hint(error.option_name, known)
    for name in known:
        near = near.replace(f"{name!r}", f"--{name.replace('_', '-')}") if name in near else near
    return f"There is no flag {error.option_name}" + (f"; {near}" if near else "; see --help.")


def _refuse(arguments: Sequence[str], kind: str, message: str) -> int:
    """Say what is wrong: words for people on standard error, with ``--json`` an object on standard output too."""
    with suppress(OSError):  # nobody takes what is said there
        print(f"orrery: {message}", file=sys.stderr)
    try:
        if "--json" in arguments:
            print(json.dumps({"error": {"kind": kind, "message": message}}))
        sys.stdout.flush()
    except OSError:  # which may be what went wrong
        _hang_up()
    return BAD_INPUT


def _hang_up() -> None:
    """Let what is still buffered for standard output go nowhere, or it would fail once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
