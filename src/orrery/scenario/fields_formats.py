"""Settings of number formats while serving; nothing heavy is imported, so that help stays quick."""

from orrery.scenario.setting import CACHE, SERVING, START, Setting, number, word

FORMAT_SETTINGS: tuple[Setting, ...] = (
    word(
        "weights",
        "Format of the weights (plan: several, comma-separated).",
        "fp8",
        "FORMAT",
        commands=SERVING | START | CACHE,
    ),
    word("activations", "Format of the activations.", "fp8", "FORMAT"),
    word(
        "kv",
        "Format of the KV cache (plan: several, comma-separated).",
        "fp8",
        "FORMAT",
        commands=SERVING | CACHE,
    ),
    word(
        "online_rotation",
        "Hadamard rotations of what enters narrow products: of blocks of N features, or those that cannot be folded "
        "into weights (folded).",
        "32",
        "N|folded",
    ),
    number(
        "wide_frac",
        "Share of the features of narrow products that run in a wider format, such as outlier channels (orrery "
        "quantize --wide-above measures it).",
        0.01,
        most=1.0,
        excludes_least=False,
        metavar="FRAC",
    ),
    word("wide_format", "Format of those features, weights and inputs (default: bf16).", "int4_int8", "FORMAT"),
    word("sparsity", "Layers keep N of every M weights, in a pattern that the device's units skip.", "2:4", "N:M"),
)
"""In the order of the help page."""
