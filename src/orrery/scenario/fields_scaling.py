"""The settings of `orrery scaling`; nothing heavy is imported, so that help stays quick."""

from orrery.scenario.setting import Setting, count, number, switch, word

SCALING_SETTINGS: tuple[Setting, ...] = (
    word("law", "Which law: fp-quantisation (few-bit floats) or quartet (FP4 against FP8).", "fp-quantisation", "NAME"),
    number("parameters", "Parameters of the model, embeddings not counted.", 1e9, most=1e16, least=1e4),
    number("tokens", "Tokens that it is trained on.", 1e11, most=1e18, least=1e4),
    count("exponent_bits", "Exponent bits (fp-quantisation).", 4, most=11),
    count("mantissa_bits", "Mantissa bits (fp-quantisation).", 3, least=0, most=23),
    count("block", "Elements that share a scale (fp-quantisation; default 128).", 32, most=2**30),
    word(
        "coefficients",
        "Your own coefficients of the law (fp-quantisation), the paper's for the rest: n, alpha, d, beta, "
        "epsilon, gamma, delta, nu, num_flops_per_bit.",
        "gamma=9000,nu=2.8",
        "NAME=VALUE,…",
    ),
    number(
        "compute_flops",
        "A compute budget in 16-bit operations (default: what the asked run takes).",
        1e24,
        most=1e40,
        metavar="FLOPS",
    ),
    word("device", "Whose FP4 and FP8 peak rates to compare (quartet).", "b200", "NAME|PATH"),
    number(
        "fp4_ratio",
        "FP4 products are so many times as fast as FP8's (quartet; default: the device's, or 2).",
        1.8,
        most=100.0,
    ),
    number(
        "parameters_frac",
        "Effective share of parameters with FP4 forward, eff_N (default: Quartet's own).",
        0.64,
        most=2.0,
        metavar="FRAC",
    ),
    number(
        "tokens_frac",
        "Effective share of tokens with FP4 backward, eff_D (default: Quartet's own).",
        0.9,
        most=2.0,
        metavar="FRAC",
    ),
    word(
        "runs",
        "A CSV table of your own FP4 runs (parameters, tokens, loss, fp4 = forward or backward): eff_N and eff_D of "
        "your method (quartet).",
        "fp4-runs.csv",
        "FILE",
    ),
    switch("same_size", "The model keeps its size and sees more tokens (default: it grows with the forward speed)."),
)
"""In the order of the help page."""

SCALING_BY_NAME = {s.name: s for s in SCALING_SETTINGS}
