"""Measured backward passes of attention are answered: two and a half times the forward work in one launch."""

import numpy as np
import pytest

from orrery.catalog.devices import get_device
from orrery.evidence.answers import Answers
from orrery.evidence.kernel_rows import answer
from orrery.evidence.tables import Table
from orrery.kernels import predict
from orrery.kernels.ops import AttentionPrefill


def test_a_backward_pass_is_its_forward_pass_two_and_a_half_times():
    sizes = {
        "batch": 2,
        "query_tokens": 4096,
        "context_tokens": 4096,
        "num_heads": 32,
        "num_kv_heads": 8,
        "head_size": 128,
    }
    columns = {"device": ["h100-sxm"], "op": ["attention_backward"], "format": ["bf16"], "time_s": ["1e-3"]}
    table = Table("measured", columns | {name: [str(size)] for name, size in sizes.items()})
    answers = Answers(num_rows=1)
    answer(table, np.array([0]), answers)
    forward = predict(AttentionPrefill(**sizes, format="bf16", kv_format="bf16"), get_device("h100-sxm"))
    launch, whole = float(forward.overhead_s), float(forward.time_s)
    assert answers.predicted["time_s"][0] == pytest.approx(launch + 2.5 * (whole - launch))
