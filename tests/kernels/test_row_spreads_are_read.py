"""Learned error ranges are those of today's ops: a field more in an op must not lose them unseen."""

import pytest

from orrery.catalog.residuals import FOLDER, read_row_spreads
from orrery.kernels.ops import AttentionDecode, AttentionPrefill, Elementwise, Gemm, LatentDecode, LatentPrefill
from orrery.kernels.residual.terms import names_of

OPS = {
    "gemm": Gemm,
    "attention_decode": AttentionDecode,
    "attention_prefill": AttentionPrefill,
    "mla_decode": LatentDecode,
    "mla_prefill": LatentPrefill,
    "elementwise_norm": Elementwise,
}


@pytest.mark.parametrize(("op", "kind"), OPS.items())
def test_columns_are_the_fields_of_the_op(op, kind):
    found = read_row_spreads(FOLDER / f"{op}_spread.npz")
    assert found
    assert {known.trees.names for known in found.values()} == {names_of(kind)}
