"""Low-rank additions beside frozen linear layers: their own products, and the passes that join them to the layer.

An addition makes y = W x + s B A x, with A (r x k) and B (n x r). Forward: two thin products, and the result scaled and
added, in passes of their own, or in one where a framework fuses. Backward: gradients of both and of what each read, the
gradient scaled on its way in, and the input's gradients of both branches added. A dropout before A reads its input,
writes it again and a mask, and so on the way back. [hu-2021]
"""

import numpy as np
from numpy.typing import NDArray

from orrery.execution.train.cut import Choice, Product, adapted, tokens
from orrery.execution.train.job import LOW_RANK, TrainingJob
from orrery.execution.train.passes import DROPOUT_RATIO, SCALED_RATIO, Streams, elementwise_s
from orrery.execution.train.products import Passes, nothing, trained_times

Floats = NDArray[np.float64]


def adapter_times(job: TrainingJob, products: list[Product], choice: Choice) -> tuple[Passes, Streams]:
    """Products and passes (s) of one layer's additions; nothing where none are trained."""
    zero = np.zeros(choice.tp.shape)
    work, streams = nothing(choice), Streams(forward_s=zero, backward_s=zero)
    if job.task not in LOW_RANK:
        return work, streams
    t, rank = tokens(job, choice), np.full_like(choice.tp, job.adapter_rank)
    drops = DROPOUT_RATIO * job.framework.drops_adapted
    for p in adapted(job, products):
        m, n, k, groups = (np.array(pair) for pair in ((t, t), (rank, p.n), (p.k, rank), (p.groups, p.groups)))
        work = sum(trained_times(job, m, n, k, groups), work)
        out, into = (elementwise_s(job, "add", t, width * p.groups) for width in (p.n, p.k))
        scaled = 0.0 if job.framework.is_fused else SCALED_RATIO
        streams = streams + Streams(
            forward_s=(scaled + 1.0) * out + drops * into,
            backward_s=SCALED_RATIO * out + (1.0 + drops) * into,
        )
    return work, streams
