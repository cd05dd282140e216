"""The reference model in PyTorch is the one in NumPy."""

import numpy as np
import pytest

from orrery.base.errors import OrreryError
from orrery.calibrate.measure import torch_kernels
from orrery.calibrate.truth.server import Limits, serve
from orrery.calibrate.truth.torch_transformer import on_torch
from orrery.calibrate.truth.transformer import transformer
from orrery.serving.requests import Requests

CONFIG = {
    "model_type": "llama",
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "intermediate_size": 40,
    "vocab_size": 50,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
}
PROMPT = np.random.default_rng(0).integers(50, size=13)


def test_without_pytorch_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(torch_kernels, "load", lambda: None)
    with pytest.raises(OrreryError, match="pip install torch"):
        on_torch(transformer(CONFIG))


@pytest.mark.slow
def test_steps_say_what_those_in_numpy_say():
    pytest.importorskip("torch")
    plain = transformer(CONFIG)
    model = on_torch(plain)
    ours, theirs = [[m.new_cache(20) for _ in range(3)] for m in (model, plain)]
    for cut in ((0, 4), (4, 9), (9, 10), (10, 11)):  # prompts, chunks of prompts, decodes
        new = [PROMPT[slice(*cut)], PROMPT[cut[0] + 2 : cut[1] + 1], PROMPT[cut[0] : cut[0] + 1]]
        found = model.logits(list(zip(ours, new, strict=True)))
        np.testing.assert_allclose(found.numpy(), plain.logits(list(zip(theirs, new, strict=True))), atol=3e-5)


@pytest.mark.slow
def test_the_server_runs_it_as_it_is():
    pytest.importorskip("torch")
    requests = Requests(arrive_s=np.zeros(3), input_tokens=np.array([5, 9, 3]), output_tokens=np.array([4, 1, 6]))
    run = serve(on_torch(transformer(CONFIG)), requests, Limits(max_num_seqs=2))
    assert [t.size for t in run.token_times_s] == [4, 1, 6]
