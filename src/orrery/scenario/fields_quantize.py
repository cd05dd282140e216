"""The settings of `orrery quantize` and `orrery formats compare`; nothing heavy is imported: help stays quick."""

from orrery.scenario.setting import Setting, count, number, switch, word

SEED = count("seed", "Seed of everything that is drawn (default 0).", 0, least=0, most=2**53)

QUANTIZE_SETTINGS: tuple[Setting, ...] = (
    word("formats", "Number formats, comma-separated: names or spellings.", "nvfp4,mxfp4,int4/128:fp16", "F,F,…"),
    word(
        "recipes",
        "Recipes to try on matrices, comma-separated; + puts one after the other.",
        "gptq,hadamard+gptq",
        "R,R,…",
    ),
    word("activations", "What flows into the layers, for recipes: a file of (tokens, features).", "x.npy", "FILE"),
    word(
        "activation_formats",
        "With --recipes: formats of the activations, each beside every format of the weights (default: theirs).",
        "int8/tensor,e4m3/tensor",
        "F,F,…",
    ),
    word("cost", "With --activation-formats: also lookup tables of a multiply-accumulate on an FPGA.", "lut", "lut"),
    count("sum_terms", "With --cost: products that an accumulator takes up (default 1024).", 1024, most=1 << 40),
    word(
        "model",
        "With --recipes kurtail: memory that learning this model's rotations needs.",
        "llama-3-70b",
        "NAME|PATH",
    ),
    word("device", "With --model: where they are learned.", "h100-sxm", "NAME|PATH"),
    count("calibration_tokens", "With --model: tokens that a layer sees (default 1048576).", 65536, most=1 << 40),
    count("sequence_tokens", "With --model: tokens of a sequence, end to end (default 2048).", 2048, most=1 << 30),
    word("rounding", "nearest-even (default), toward-zero, stochastic, …", "stochastic", "MODE"),
    SEED,
    count(
        "seeds",
        "With --recipes: so many runs, from that seed on; means, and the least and most of each (default 1).",
        3,
        most=1000,
    ),
    count("rows", "Rows of a drawn tensor (default 4096).", 4096, most=1_000_000),
    count("columns", "Columns of a drawn tensor (default 1024).", 1024, most=1_000_000),
    number(
        "wide_above",
        "Columns with a magnitude above this stay in 16 bits: their share (for estimate --wide-frac), and what the "
        "others lose.",
        6.0,
        most=1e30,
    ),
    word("tensors", "Only tensors whose names match, such as '*mlp*'.", "*mlp*", "GLOB"),
)

COMPARE_SETTINGS: tuple[Setting, ...] = (
    word(
        "device",
        "A device's name or file: what runs, how fast, and the front of speed against signal.",
        "b200",
        "NAME|PATH",
    ),
    word(
        "on", "Distributions or a file of tensors, comma-separated (default normal).", "normal,outliers", "D,D,…|FILE"
    ),
    switch("rotate", "Rotate rows by a random Hadamard matrix first."),
    count("rotate_block", "With --rotate: elements that turn together (default: as divide a row).", 32, least=2),
    word("cost", "Also what one multiply-accumulate takes on an FPGA: lut, or dsp.", "lut", "lut|dsp"),
    count("sum_terms", "With --cost: products that an accumulator takes up (default 1024).", 1024, most=1 << 40),
    word("model", "With --device: also tokens/s and TTFT of a model.", "llama-3.1-8b", "NAME|PATH"),
    word("engine", "With --device: whose kernels (default vllm).", "vllm", "NAME"),
    SEED,
)

QUANTIZE_BY_NAME = {s.name: s for s in QUANTIZE_SETTINGS}
COMPARE_BY_NAME = {s.name: s for s in COMPARE_SETTINGS}
