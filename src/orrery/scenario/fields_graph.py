"""The keys of a graph of calls, which `orrery fleet --graph` reads; nothing heavy is imported."""

from orrery.scenario.setting import Setting, count, number, word


def _number(name: str, help: str, example: float, *, most: float, metavar: str = "X") -> Setting:
    return number(name, help, example, most=most, excludes_least=False, metavar=metavar)


STAGE_SETTINGS: tuple[Setting, ...] = (
    word("name", "Its name.", "plan", "NAME"),
    Setting(name="after", kind="words", help="Stages that must have ended before.", example='["plan"]'),
    word("model", "The model that it calls.", "llama-3.1-8b", "NAME"),
    count("tp", "Devices of one machine that serves it (default 1).", 2, most=4096),
    number("input_tokens", "Tokens of its prompt.", 2000, most=100_000_000),
    number("output_tokens", "Tokens of its answer.", 300, most=100_000_000),
    _number("cpu_s", "Time that it takes on processor cores, in place of a model.", 0.2, most=1e6, metavar="S"),
    count("cores", "Cores that it takes for so long (default 1).", 4, most=100_000),
    count("times", "How often it runs, one after the other (default 1).", 3, most=100_000),
    _number("passed_bytes", "What it hands to each stage after it (default 0).", 20_000, most=1e15, metavar="BYTES"),
    Setting(name="prompt_on", kind="words", help="Devices for its prompt (default: any).", example='["h100-sxm"]'),
    Setting(name="answer_on", kind="words", help="Devices for its answer (default: any).", example='["h200-sxm"]'),
)

GRAPH_SETTINGS: tuple[Setting, ...] = (
    _number("link_bytes_per_s", "Between two machines (default 50e9: 400 Gb/s).", 50e9, most=1e15, metavar="B/S"),
    _number("core_usd_per_hour", "Price of a processor core.", 0.04, most=1e5, metavar="USD"),
)

GRAPH_BY_NAME = {s.name: s for s in GRAPH_SETTINGS}
STAGE_BY_NAME = {s.name: s for s in STAGE_SETTINGS}
