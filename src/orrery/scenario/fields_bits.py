"""The settings of `orrery bits`; nothing heavy is imported, so that help stays quick."""

from orrery.scenario.setting import Setting, count, number, switch, word

BITS_SETTINGS: tuple[Setting, ...] = (
    word("model", "A model's name, or a config.json: its linear layers and experts.", "llama-3.1-8b", "NAME|PATH"),
    word(
        "checkpoint",
        "In place of a model: a .safetensors file or folder, whose weights are also measured.",
        "model.safetensors",
        "PATH",
    ),
    word("layers", "In place of a model: a CSV or TOML list of layers (name, m, n, k, …).", "layers.csv", "FILE"),
    word("device", "A device's name or file.", "b200", "NAME|PATH"),
    word("formats", "Formats to choose from, comma-separated, widest first.", "bf16,fp8,nvfp4", "F,F,…"),
    count("tokens", "Tokens in a step, for a model or checkpoint (default 16).", 16, most=100_000_000),
    word("engine", "Whose kernels.", "vllm", "NAME"),
    switch("integer_only", "Results are codes of the layer's integer format, as in a network of integers alone."),
    word("cost", "On an FPGA: circuits of lookup tables alone (lut), or of multiplier blocks too.", "lut", "lut|dsp"),
    count("sum_terms", "With --cost: products that an accumulator takes up (default 1024).", 1024, most=1 << 40),
    word("sensitivity", "CSV or JSON: each layer's weight, or its perturbation by format.", "traces.csv", "FILE"),
    number("latency_ratio", "Latency at most this share of the slowest uniform assignment's.", 0.7, most=1000.0),
    number("size_ratio", "Size at most this share of the largest uniform assignment's.", 0.5, most=1000.0),
    number("energy_ratio", "Energy at most this share of the hungriest uniform assignment's.", 0.6, most=1000.0),
    number("latency_s", "Max latency of all layers, in seconds.", 0.002, most=1e9, metavar="S"),
    number("size_bytes", "Max size of the weights of all layers, in bytes.", 6e9, most=1e18, metavar="BYTES"),
    number("energy_j", "Max energy of one pass, in joules.", 1.5, most=1e12, metavar="J"),
    count("seed", "Seed of the drawn numbers that errors are estimated on.", 0, least=0, most=2**53),
)
"""In the order of the help page."""

BITS_BY_NAME = {s.name: s for s in BITS_SETTINGS}
