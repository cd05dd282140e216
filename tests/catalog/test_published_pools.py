"""What scripts let a decode worker hold: found where everything is equal, nowhere else."""

import pytest

from orrery.catalog.published_pools import most_decoding

MODEL = "deepseek-ai/DeepSeek-R1-0528"
RUN = {
    "engine": "tensorrt-llm",
    "weights": "fp8",
    "device": "gb200",
    "input_tokens": 8192,
    "output_tokens": 1024,
    "prefill_workers": 1,
    "decode_workers": 3,
    "decode_tp": 8,
    "decode_dp": 1,
}


@pytest.mark.parametrize(("concurrency", "batch"), [(6, 1), (18, 4), (63, 16)])
def test_the_recipe_of_a_concurrency(concurrency, batch):
    found = most_decoding(MODEL, concurrency, RUN)
    assert found is not None
    assert found.value == batch
    assert f"batch{batch}" in found.at


@pytest.mark.parametrize(
    "changes", [{"engine": "sglang"}, {"device": "gb300"}, {"decode_workers": 4}, {"input_tokens": 1024}]
)
def test_nothing_is_known_of_other_runs(changes):
    assert most_decoding(MODEL, 18, RUN | changes) is None
    assert most_decoding(MODEL, 19, RUN) is None
    assert most_decoding("meta-llama/Llama-3.1-70B", 18, RUN) is None
