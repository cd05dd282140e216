"""The settings of `orrery search`; nothing heavy is imported, so that help stays quick."""

from orrery.scenario.setting import Setting, count, number, word

SPACES = ("cells", "darts", "mbconv", "blocks", "formats", "transformer-shape")
METHODS = ("program", "enumeration", "evolution", "differentiable", "policy")
TRAINED = ("trained", "shared")
"""Scores of small networks that are trained here: each by itself, or all with one set of weights."""

OBJECTIVES = ("score", "latency", "energy", "memory", "parameters", "work")

SEARCH_SETTINGS: tuple[Setting, ...] = (
    word("space", f"Networks to choose from: {', '.join(SPACES)}, or a .toml file of your own.", "mbconv", "NAME|FILE"),
    word("device", "Devices, comma-separated; each gets a network of its own.", "h100-sxm,m2-max", "NAME,…"),
    word(
        "objective",
        f"What is best, and the metric on the front beside it: {', '.join(OBJECTIVES)}.",
        "score,latency",
        "A,B",
    ),
    word(
        "method",
        f"How it is searched: {', '.join(METHODS)} (default: program where metrics are sums).",
        "program",
        "NAME",
    ),
    word(
        "scores",
        "Quality: a CSV of choice,alternative,score (or damage); work (multiply-adds); trained or shared: small "
        "networks trained here; default: a stand-in.",
        "scores.csv",
        "FILE|work|trained|shared",
    ),
    word(
        "predictor",
        "Latency by a predictor that your own timings adapt, for cells: few-shot (default: the kernel rules).",
        "few-shot",
        "few-shot",
    ),
    word(
        "measurements",
        "With --predictor: a CSV of network,latency_s; ten networks that it names, and others to judge it by.",
        "timings.csv",
        "FILE",
    ),
    count(
        "train_steps",
        "Steps of training a small network (default 60; shared weights: ten times).",
        60,
        most=10_000,
    ),
    word("model", "The model whose blocks, layers' formats or shape are searched.", "llama-3.1-8b", "NAME|PATH"),
    word("formats", "Formats of the space of formats, comma-separated, widest first.", "bf16,fp8,nvfp4", "F,F,…"),
    count("batch", "Images at once, or sequences of a training step (default 1).", 8, most=1_000_000),
    count("tokens", "Tokens in a step, for formats (default 16).", 16, most=100_000_000),
    count("seq_len", "Tokens of a sequence, for transformer-shape (default 4096).", 4096, most=10_000_000),
    count("concurrency", "Sequences in a decode step, for blocks (default 32).", 32, most=1_000_000),
    count("input_tokens", "Tokens of a prompt, for blocks (default 1024).", 1024, most=10_000_000),
    count("output_tokens", "Tokens of an answer, for blocks (default 256).", 256, most=10_000_000),
    word("weights", "Format of the weights, for blocks; of the arithmetic, for transformer-shape.", "fp8", "FORMAT"),
    word("kv", "Format of the cache, for blocks.", "fp8", "FORMAT"),
    count("tp", "Tensor parallelism, for blocks (default 1).", 1, most=1024),
    word("engine", "Whose kernels, for blocks.", "vllm", "NAME"),
    number("latency_s", "Latency at most, in seconds.", 0.01, most=1e9, metavar="S"),
    number("latency_ratio", "Latency at most this share of the reference's.", 0.5, most=1000.0),
    number("energy_j", "Energy at most, in joules.", 1.5, most=1e12, metavar="J"),
    number("energy_ratio", "Energy at most this share of the reference's.", 0.5, most=1000.0),
    number("memory_bytes", "Memory at most, in bytes.", 8e10, most=1e18, metavar="BYTES"),
    number("memory_ratio", "Memory at most this share of the reference's.", 0.5, most=1000.0),
    number("max_parameters", "Parameters at most.", 5e10, most=1e15, metavar="N"),
    number("min_score", "Score at least.", -1.0, least=-1e30, most=1e30, excludes_least=False),
    number(
        "min_score_ratio",
        "Score at least this share of the reference's, where scores are above zero.",
        1.0,
        most=1000.0,
    ),
    number("first_parameters", "Evolution: parameters at most in the first generation.", 5e5, most=1e15, metavar="N"),
    count("population", "Evolution: networks of a generation (default 40).", 40, least=2, most=10_000),
    count("generations", "Evolution: generations (default 30).", 30, most=10_000),
    count("steps", "Steps of a differentiable run (default 150) or of a policy (300).", 150, most=100_000),
    count("runs", "Differentiable: runs from drawn beginnings (default 8).", 8, most=1000),
    count("seed", "First seed of whatever is drawn (default 0).", 0, least=0, most=2**31),
    count("seeds", "Searches, from that seed on: bands over them (default 1).", 3, most=100),
)
"""In the order of the help page."""

SEARCH_BY_NAME = {s.name: s for s in SEARCH_SETTINGS}
