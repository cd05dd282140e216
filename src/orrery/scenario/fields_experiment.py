"""The settings of `orrery experiment`; nothing heavy is imported, so that help stays quick."""

from orrery.scenario.setting import Setting, count, word

EXPERIMENT_SETTINGS: tuple[Setting, ...] = (
    word("experiment", "Which one; `orrery experiment` lists them.", "narrow-lanes", "NAME"),
    count("seed", "Of data, first weights and rounding (default 0).", 0, least=0, most=2**63),
    count("seeds", "Runs from that seed on: means, and bands (default 1).", 3, most=100),
    count("steps", "Optimizer steps of each run (default: the experiment's own).", 50, most=100_000),
    Setting(
        name="set",
        kind="words",
        help="Sizes of the experiment; a list, or a table of names and values.",
        example='["hidden=64"]',
        metavar="NAME=VALUE",
    ),
    word("data", "Your own arrays (.npz) or table (.csv), where it reads them.", "mine.npz", "FILE"),
    word("device", "What to price it on, where the experiment does.", "t4", "NAME"),
    word("deployment", "A scenario file of a deployment, where it reads one.", "deployment.toml", "FILE"),
)
"""In the order of the help page."""

EXPERIMENT_BY_NAME = {s.name: s for s in EXPERIMENT_SETTINGS}
