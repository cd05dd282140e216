"""I-BERT's softmax in integers: a second-order polynomial for e^p, and a shift for the whole halvings.

Kim et al. 2021, "I-BERT: Integer-only BERT Quantization", section 3.5 and algorithm 3.
"""

from orrery.base.technique import Technique
from orrery.numerics.arithmetic.computed import Array, Computed
from orrery.numerics.arithmetic.exponential import polynomial_exp
from orrery.numerics.arithmetic.integer import ExpKnobs
from orrery.numerics.arithmetic.integer_softmax import integer_softmax


def rule(x: Array, step_ratio: float, knobs: ExpKnobs) -> Computed:
    """3 N codes read, N written."""
    return integer_softmax(x, step_ratio, knobs, polynomial_exp)


TECHNIQUE = Technique(
    name="polynomial-softmax",
    extension_point="numerics.softmax",
    rule=rule,
    knobs=ExpKnobs,
    gains="Softmax on integer units; the polynomial is within 0.002 of e^p on its interval.",
    costs="A multiplication of wide integers an exponential; constants are rounded to whole steps of the input.",
    claims=("kim-2021",),
)
