"""Many workers without a fast network: messages that are compressed, sums that outvote liars, and what rounds cost."""

from orrery.base.extension_points import ExtensionPoint
from orrery.fleet.decentral import techniques

COMPRESSORS = ExtensionPoint(name="fleet.compressor", folder=techniques, noun="compressor")
