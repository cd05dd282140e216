"""Settings of one answer out of many calls; nothing heavy is imported, so that help stays quick."""

from orrery.scenario.setting import ONE, Setting, count, grouped, number, word

MAX_SAMPLES = 10_000

REASONING_SETTINGS: tuple[Setting, ...] = grouped(
    "Many calls for one answer",
    word(
        "reasoning",
        "Many calls for one answer: best-of-n, majority-vote, … (`orrery show techniques`).",
        "best-of-n",
        "SHAPE",
        commands=ONE,
    ),
    word("samples", "How many samples an answer takes; several are compared.", "1,4,16,64", "N[,N…]", commands=ONE),
    Setting(
        name="reasoning_knob",
        kind="words",
        metavar="NAME=VALUE",
        example='["num_checks=8"]',
        commands=ONE,
        help="A knob of the shape: num_checks=8, prune=diverse-tree, …; repeat for more.",
    ),
    word(
        "verifier_model",
        "A model that scores the samples, on devices of its own (default: the model itself).",
        "llama-3.1-8b",
        "NAME|PATH",
        commands=ONE,
    ),
    number(
        "success",
        "Chance that one sample is right; gives the accuracy of the answer.",
        0.3,
        most=1.0,
        metavar="P",
        commands=ONE,
    ),
    number(
        "verifier_accuracy",
        "How often a verifier's yes or no is right.",
        0.8,
        most=1.0,
        excludes_least=False,
        metavar="P",
        commands=ONE,
    ),
    count(
        "wrong_answers",
        "How many different wrong answers a question draws (default 1: the worst for a vote).",
        20,
        most=1000,
        commands=ONE,
    ),
    number(
        "evenness",
        "How alike questions are: near 0 always or never solved, large alike (default: all alike).",
        1,
        most=1e9,
        commands=ONE,
    ),
    number(
        "kv_limit_bytes",
        "Cache that the answers of one replica may fill; more calls than fit run in waves.",
        20e9,
        most=1e15,
        metavar="BYTES",
        commands=ONE,
    ),
    number(
        "budget_usd",
        "Dollars that an answer may cost: the ways to spend them are ranked by how often they are right.",
        0.002,
        most=1e6,
        metavar="USD",
        commands=ONE,
    ),
)
"""In the order of the help page."""
