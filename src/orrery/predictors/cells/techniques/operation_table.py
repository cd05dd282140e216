"""Operation table: every block timed while it alone is repeated, and a network is the sum of its blocks.

[cai-2019-proxylessnas]
"""

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.predictors.cells.learned import Fit, OnStep


def rule(knobs: NoKnobs, on_step: OnStep) -> Fit:
    """Return the fit, unprepared; networks that were timed are not looked at."""
    return lambda samples: lambda cells: samples.plan.total(samples.alone_s, cells)


TECHNIQUE = Technique(
    name="operation-table",
    extension_point="predictors.cell-latency",
    rule=rule,
    gains="A hundred timings of single blocks serve every network of the space.",
    costs="Too slow an answer where launches of one block hide behind kernels of another.",
    claims=("cai-2019-proxylessnas",),
)
