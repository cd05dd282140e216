"""All operators by name, in the order of the help page."""

from collections.abc import Mapping

from orrery.scenario.fields_kernel import OPERATORS as NAMES
from orrery.scenario.kernel.attention import ATTENTION, LATENT
from orrery.scenario.kernel.blocks import BLOCK_EXCHANGE
from orrery.scenario.kernel.exchanges import COLLECTIVES, PERMUTATIONS, REDUCE_SCATTERED
from orrery.scenario.kernel.fused import CHAINS, FUSED_MLP, RECURRENT
from orrery.scenario.kernel.instruction import INSTRUCTION
from orrery.scenario.kernel.launches import LAUNCHES
from orrery.scenario.kernel.operator import Operator
from orrery.scenario.kernel.products import CONV, GEMM, GROUPED, MOE
from orrery.scenario.kernel.streaming import ELEMENTWISE, GATHER, SOFTMAX, SORT, SPGEMM
from orrery.scenario.kernel.trees import TREES

_ALL = (
    GEMM,
    GROUPED,
    CONV,
    MOE,
    ATTENTION,
    LATENT,
    SOFTMAX,
    *ELEMENTWISE,
    GATHER,
    SORT,
    SPGEMM,
    RECURRENT,
    TREES,
    CHAINS,
    FUSED_MLP,
    LAUNCHES,
    INSTRUCTION,
    BLOCK_EXCHANGE,
    REDUCE_SCATTERED,
    PERMUTATIONS,
    *COLLECTIVES,
)

OPERATORS: Mapping[str, Operator] = {name: {o.name: o for o in _ALL}[name] for name in NAMES}
