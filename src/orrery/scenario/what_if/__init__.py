"""Effect of a technique on a deployment: computed without and with it, and the difference of both."""

from orrery.scenario.what_if.ask import EVERY, WhatIfAnswer, what_if
from orrery.scenario.what_if.compare import Comparer
from orrery.scenario.what_if.result import WhatIf

__all__ = ["EVERY", "Comparer", "WhatIf", "WhatIfAnswer", "what_if"]
