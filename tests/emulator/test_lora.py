"""LoRA adapters as models: listed, loaded, unloaded, asked for, seen in the metrics; and what they cost in time."""

import httpx
import openai
import pytest
from prometheus_client.parser import text_string_to_metric_families

from orrery.base.errors import ScenarioError
from orrery.emulator.lora import LoraModules
from orrery.scenario.schema import read_scenario
from orrery.scenario.service import service_for
from orrery.serving.live import Live

ASKED = {"prompt": "a b c", "max_tokens": 4}


@pytest.fixture(scope="module")
def adapted(start):
    modules = ("sql=adapters/sql", "chat=adapters/chat")
    with (
        start({"max_loras": 2}, speed_ratio=20.0, lora_modules=modules) as found,
        httpx.Client(base_url=found.url, timeout=20) as http,
    ):
        yield found, http


def test_adapters_are_models(adapted):
    found, _ = adapted
    with openai.OpenAI(base_url=f"{found.url}/v1", api_key="none") as client:
        models = {m.id: m for m in client.models.list()}
        assert set(models) == {"llama", "other", "sql", "chat"}
        assert (models["sql"].root, models["sql"].parent) == ("adapters/sql", "llama")
        assert client.completions.create(model="sql", prompt="a", max_tokens=3).model == "sql"
        assert (
            client.chat.completions.create(
                model="chat", messages=[{"role": "user", "content": "Hi"}], max_tokens=3
            ).model
            == "chat"
        )
        assert client.responses.create(model="sql", input="Hi", max_output_tokens=16).model == "sql"


def test_they_are_loaded_and_unloaded_as_vllm_does(adapted):
    _, http = adapted
    new = {"lora_name": "new", "lora_path": "adapters/new"}
    assert http.post("/v1/completions", json=ASKED | {"model": "new"}).status_code == 404
    got = http.post("/v1/load_lora_adapter", json=new)
    assert (got.status_code, got.text) == (200, "Success: LoRA adapter 'new' added successfully.")
    assert http.post("/v1/completions", json=ASKED | {"model": "new"}).json()["model"] == "new"
    for path, body, status in (
        ("load", new, 400),
        ("load", {"lora_name": "x"}, 400),
        ("load", {"lora_name": "llama", "lora_path": "p"}, 400),
        ("load", {"lora_name": "x" * 300, "lora_path": "p"}, 400),
        ("unload", {"lora_name": "none"}, 404),
        ("unload", {}, 400),
    ):
        assert http.post(f"/v1/{path}_lora_adapter", json=body).status_code == status
    assert http.post("/v1/load_lora_adapter", json={**new, "load_inplace": True}).status_code == 200
    got = http.post("/v1/unload_lora_adapter", json={"lora_name": "new"})
    assert (got.status_code, got.text) == (200, "Success: LoRA adapter 'new' removed successfully.")
    assert http.post("/v1/completions", json=ASKED | {"model": "new"}).status_code == 404


def test_without_adapters_there_are_no_paths(fast):
    assert httpx.post(f"{fast.url}/v1/load_lora_adapter", json={}).status_code == 404


def test_the_caches_of_adapters_are_apart(adapted):
    """The same 64 words twice: from the cache where the adapter is the same, computed where it is another."""
    _, http = adapted
    prompt = " ".join(["the"] * 64)
    cached = [
        http.post("/v1/completions", json={"model": m, "prompt": prompt, "max_tokens": 2}).json()["usage"]
        for m in ("llama", "sql", "sql", "llama")
    ]
    assert [u["prompt_tokens_details"]["cached_tokens"] > 0 for u in cached] == [False, False, True, True]


def test_metrics_name_the_adapters_that_run(start, until):
    def info(http):
        families = text_string_to_metric_families(http.get("/metrics").text)
        (sample,) = [s for f in families for s in f.samples if s.name == "vllm:lora_requests_info"]
        return sample.labels

    body = {"model": "sql", "prompt": "a", "max_tokens": 4000, "ignore_eos": True, "stream": True}
    with (
        start({"max_num_seqs": 1}, lora_modules=("sql=p", "chat=q")) as found,
        httpx.Client(base_url=found.url) as http,
    ):
        assert info(http) == {"max_lora": "1", "waiting_lora_adapters": "", "running_lora_adapters": ""}
        with (
            http.stream("POST", "/v1/completions", json=body),
            httpx.Client(base_url=found.url) as second,
            second.stream("POST", "/v1/completions", json=body | {"model": "chat"}),
            httpx.Client(base_url=found.url) as third,
        ):
            until(lambda: info(third)["waiting_lora_adapters"])
            seen = info(third)
    assert (seen["running_lora_adapters"], seen["waiting_lora_adapters"]) == ("sql", "chat")


def first_token_s(adapter, slots):
    """From the arrival to the first token, of a request alone that chooses an adapter."""
    scenario = {"model": "llama-3.1-8b", "device": "h100-sxm", "lora_adapters": slots, "max_loras": slots}
    live = Live.of(service_for(read_scenario(scenario))[0])
    live.submit(now_s=0.0, input_tokens=100, output_tokens=2, adapter=adapter)
    return live.advance(10.0).time_s[0]


def test_an_adapter_that_is_not_there_comes_over_the_link_first():
    """Rank 16 on every linear layer of an 8B model is 42 M parameters (84 MB), some milliseconds over PCIe."""
    there, comes, none = (first_token_s(adapter, 2) for adapter in (1, 7, -1))
    assert none <= there < comes
    assert 0.001 < comes - there < 0.01


def test_modules_are_checked():
    assert LoraModules.of(("a=b", "c"), 4, 16, ("m",)).paths == {"a": "b", "c": "c"}
    assert LoraModules.of(("a=b",), 4, 16, ()).next_number == 4
    for wrong in (("=b",), ("a=",), ("m=b",), ("a=b", "a=c")):
        with pytest.raises(ScenarioError, match="lora-modules"):
            LoraModules.of(wrong, 1, 16, ("m",))
