"""Quantiles as outputs: a median and two distances from it, trained by the pinball loss [koenker-1978].

loss_q = max(q e, (q - 1) e)    e = what was measured - what was predicted
"""

from typing import Any

import numpy as np

from orrery.predictors.learn.extra import learning_package

QUANTILES = (0.1, 0.5, 0.9)


def ordered(outputs: Any) -> Any:
    """Three outputs a row as a tenth, a half and nine tenths, in this order whatever the outputs are."""
    anp = learning_package("autograd.numpy")
    middle, distances = outputs[:, 1:2], anp.logaddexp(0.0, anp.concatenate([outputs[:, :1], outputs[:, 2:]], axis=1))
    return anp.concatenate([middle - distances[:, :1], middle, middle + distances[:, 1:]], axis=1)


def pinball(quantiles: Any, measured: Any) -> Any:
    """Mean loss of the three, for one measurement a row."""
    anp = learning_package("autograd.numpy")
    error, shares = anp.reshape(measured, (-1, 1)) - quantiles, np.array(QUANTILES, np.float32)
    return anp.mean(anp.maximum(shares * error, (shares - 1.0) * error))


def ordered_pinball(outputs: Any, measured: Any) -> Any:
    """The loss of three outputs a row, put in order."""
    return pinball(ordered(outputs), measured)
