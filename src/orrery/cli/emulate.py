"""``orrery emulate``: an OpenAI-compatible server with the timing of a deployment that need not exist."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orrery.cli.options import scenario_flags, scenario_from, setting_flags, typed_flags
from orrery.scenario.fields_fleet import FLEET_SETTINGS

if TYPE_CHECKING:
    from orrery.emulator.start import Ready, ServerOptions
    from orrery.scenario.ask import InfeasibleAnswer

EXAMPLES = """\b
Examples:
  orrery emulate --model llama-3.1-8b --device h100-sxm
  orrery emulate --model llama-3.1-70b --device h100-sxm --tp 4 --replicas 2 --output-tokens 300 --port 9000
  orrery emulate FLEET.toml --speed 60 --play-traffic
  orrery emulate --model llama-3.1-8b --device h100-sxm --speed 10 --max-num-queued-reqs 100 --failure-rate 0.01
Then point any client of OpenAI's interface at http://127.0.0.1:8000/v1; /metrics has vLLM's names."""

KEY = "ORRERY_API_KEY"


OF_FLEET = (
    "replicas_min",
    "replicas_max",
    "prefill_replicas_min",
    "prefill_replicas_max",
    "cold_start_s",
    "autoscaler",
    "autoscaler_knob",
    "prefill_autoscaler",
    "prefill_autoscaler_knob",
    "max_queue",
    "fault_rates",
)
"""Settings of a fleet that are flags here; every key may stand in its file."""


def _fleet_flags(function: Any) -> Any:
    return setting_flags(function, [s for s in FLEET_SETTINGS if s.name in OF_FLEET])


@click.command("emulate", epilog=EXAMPLES)
@click.argument("file", metavar="[FLEET.toml]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Where to listen; other than this machine: with care."
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A name under which clients may ask; repeat for more (localhost and addresses in numbers are known).",
)
@click.option("--port", default=8000, type=click.IntRange(0, 65535), show_default=True, help="0: any free one.")
@click.option(
    "--speed",
    default=1.0,
    type=click.FloatRange(0.001, 1000),
    metavar="X",
    show_default=True,
    help="How many seconds of the deployment pass in one of yours.",
)
@click.option(
    "--served-model-name",
    "names",
    multiple=True,
    metavar="NAME",
    help="The model's name in requests and answers (default: as --model is known); repeat for more.",
)
@click.option(
    "--api-key",
    envvar=KEY,
    default="",
    metavar="KEY",
    help=f"Asked for on all paths under /v1 and /admin; better set {KEY} than show it in the list of processes.",
)
@click.option(
    "--ssl-certfile", type=click.Path(path_type=Path), metavar="FILE", help="Answer over TLS: the certificate (PEM)."
)
@click.option("--ssl-keyfile", type=click.Path(path_type=Path), metavar="FILE", help="Its private key (PEM).")
@click.option(
    "--max-num-queued-reqs",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Requests that may wait; further ones get 429 (default: any number).",
)
@click.option(
    "--failure-rate",
    type=click.FloatRange(0, 1),
    default=0.0,
    metavar="FRAC",
    help="Share of requests that fail on purpose, with 500, 503 or 429.",
)
@click.option(
    "--admin",
    "has_admin",
    is_flag=True,
    help="Open /admin: lose replicas, slow them, scale, make load and failures while the server runs.",
)
@click.option(
    "--legacy-metrics",
    "has_legacy_metrics",
    is_flag=True,
    help="Also publish names that vLLM gave up, such as vllm:gpu_cache_usage_perc.",
)
@click.option(
    "--lora-modules",
    "lora_modules",
    multiple=True,
    metavar="NAME=PATH",
    help="A LoRA adapter as a model of its own; repeat for more (nothing is read at its path).",
)
@click.option("--image-model", default="", metavar="NAME", help="A diffusion pipeline that makes pictures beside it.")
@click.option("--image-device", default="", metavar="NAME", help="Its device (default: one as the model has).")
@click.option("--speech-model", default="", metavar="NAME", help="A Whisper that transcribes recordings beside it.")
@click.option("--speech-device", default="", metavar="NAME", help="Its device (default: one as the model has).")
@click.option(
    "--kv-events",
    is_flag=False,
    flag_value="tcp://127.0.0.1:5557",
    default="",
    metavar="[ADDRESS]",
    help="Tell what the prefix caches store and remove, as vLLM does over ZeroMQ; engine k has the port plus k.",
)
@click.option(
    "--kv-events-replay", default="", metavar="ADDRESS", help="Where missed events are asked for; engine k as above."
)
@click.option("--kv-events-topic", default="", metavar="TEXT", help="The topic of the events (default: none).")
@click.option(
    "--kv-events-connect", is_flag=True, help="Connect to subscribers that bind the address, instead of binding it."
)
@click.option(
    "--play-traffic",
    "plays_traffic",
    is_flag=True,
    help="Send the fleet's own traffic (rate or trace, curve, tenants) on the clock, beside that of clients.",
)
@click.option(
    "--external-autoscaler",
    "is_external",
    is_flag=True,
    help="Leave the fleet's own autoscaler out: replicas run as /admin/scale or the Scale subresource says.",
)
@_fleet_flags
@scenario_flags("emulate")
def command(
    file: Path | None,
    scenario_file: Path | None,
    save_scenario: Path | None,
    is_json: bool,
    host: str,
    hosts: tuple[str, ...],
    port: int,
    speed: float,
    names: tuple[str, ...],
    api_key: str,
    ssl_certfile: Path | None,
    ssl_keyfile: Path | None,
    max_num_queued_reqs: int,
    failure_rate: float,
    has_admin: bool,
    has_legacy_metrics: bool,
    lora_modules: tuple[str, ...],
    image_model: str,
    image_device: str,
    speech_model: str,
    speech_device: str,
    kv_events: str,
    kv_events_replay: str,
    kv_events_topic: str,
    kv_events_connect: bool,
    plays_traffic: bool,
    is_external: bool,
    **flags: Any,
) -> int:
    """Serve OpenAI's interface as a deployment would: the same batching, queues and cache, on a clock."""
    import asyncio
    import gc
    import sys

    from orrery.base.errors import ScenarioError
    from orrery.base.listening import address_of, listening
    from orrery.cli.output import print_infeasible, print_json, print_notes
    from orrery.scenario.ask import InfeasibleAnswer

    try:
        from orrery.emulator.serve import serve
        from orrery.emulator.start import ServerOptions
        from orrery.emulator.tls import tls_files
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        raise ScenarioError(f"emulate needs {error.name}: pip install 'orrery-ai[emulate]'.") from None
    options = ServerOptions(
        names=names,
        speed_ratio=speed,
        api_key=api_key,
        max_queued=max_num_queued_reqs,
        failure_frac=failure_rate,
        has_admin=has_admin,
        has_legacy_metrics=has_legacy_metrics,
        hosts=(*hosts, host),
        lora_modules=lora_modules,
        image_model=image_model,
        image_device=image_device,
        speech_model=speech_model,
        speech_device=speech_device,
        kv_events=kv_events,
        kv_events_replay=kv_events_replay,
        kv_events_topic=kv_events_topic,
        kv_events_connect=kv_events_connect,
    )
    tls = tls_files(ssl_certfile, ssl_keyfile)
    fleet = FleetOptions(plays_traffic=plays_traffic, is_external=is_external)
    with listening(host, port) as listener:
        found = _ready(file, flags, (scenario_file, save_scenario), options, fleet)
        if isinstance(found, InfeasibleAnswer):
            return print_infeasible(found, is_json)
        print_notes(found.notes)
        address = address_of(listener).replace("http:", "https:" if tls else "http:", 1)
        if is_json:
            print_json({"address": address, "models": list(found.settings.names)})
            sys.stdout.flush()
        print(
            f"Serving {found.settings.names[0]} at {address}/v1; Ctrl-C stops.",
            file=sys.stderr,
            flush=True,
        )
        gc.freeze()  # the simulator's tables stay: looking through them again and again would delay tokens
        asyncio.run(serve(found, listener, tls=tls))
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOptions:
    """Options that apply to fleets only."""

    plays_traffic: bool
    is_external: bool


def _ready(
    file: Path | None,
    flags: dict[str, Any],
    scenario_files: tuple[Path | None, Path | None],
    options: "ServerOptions",
    fleet: FleetOptions,
) -> "Ready | InfeasibleAnswer":
    """The fleet of a file and of flags where there is any, else the deployment of a scenario."""
    from orrery.base.errors import ScenarioError
    from orrery.cli.progress import patience
    from orrery.emulator.start import ready
    from orrery.emulator.start_fleet import ready_fleet, settings_of_fleet
    from orrery.scenario.fleet.read import read_fleet

    typed = typed_flags(flags)
    given = {name: typed.pop(name) for name in OF_FLEET if name in typed}
    if file is None and not given:
        if fleet.plays_traffic or fleet.is_external:
            raise ScenarioError(
                "play-traffic, external-autoscaler: are of a fleet; write its file, or flags such as --replicas-max 4."
            )
        return ready(scenario_from(typed, *scenario_files), options, patience())
    if any(scenario_files):
        raise ScenarioError("scenario: a fleet is read from its own file: orrery emulate FLEET.toml.")
    inputs = read_fleet(settings_of_fleet(file, {**typed, **given}), str(file or ""))
    if fleet.is_external:
        inputs = inputs.without_autoscaler()
    return ready_fleet(inputs, options, patience(), plays_traffic=fleet.plays_traffic)


NEEDED = frozenset({"uvicorn", "httptools", "msgspec", "prometheus_client", "python_multipart"})
"""Packages of the extra ``emulate``."""
