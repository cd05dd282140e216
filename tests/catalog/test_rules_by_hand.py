"""Rules of back ends and of publishers' scripts: by hand."""

from dataclasses import replace

import pytest

from orrery.base.errors import UnknownName
from orrery.base.sources import Source
from orrery.catalog import backends, scripts
from orrery.catalog.backends import backend_of_kernel, experts_by_default, get_backend, rules_of
from orrery.execution.engine import Situation

SOURCE = Source(title="a table", retrieved="2026-11")


def rule(**stated):
    usual = {"engine": "e", "backend": "triton", "source": "code", "at": "line 1"}
    return usual | stated


def test_rules_of_back_ends(monkeypatch):
    """A rule holds from its release to before another; ends of degrees count; words that are blank accept all."""
    file = {
        "sources": {"code": {"title": "source", "retrieved": "2026-11"}},
        "backend": [{"name": "triton", "aliases": ["tri-ton"]}, {"name": "cutlass"}],
        "kernel": [{"has": "grouped", "formats": ["fp8"], "backend": "cutlass"}, {"has": "moe", "backend": "triton"}],
        "rule": [
            rule(
                backend="cutlass", **{"from": "0.9", "until": "1.0", "on": ["hopper"], "ep": [2, 8], "tokens": [1, 64]}
            ),
            rule(
                formats=["fp8"],
                activations="fp8",
                tuned_by="x",
                mixers=["latent"],
                modes=["closed"],
                families=["llama"],
            ),
            rule(engine="other"),
        ],
    }
    monkeypatch.setattr(backends, "_file", lambda kind: file)
    first, second = backends._rules("moe", "e", "0.9.1")
    assert [r.backend for r in backends._rules("moe", "e", "1.0")] == ["triton"]
    assert [r.backend for r in backends._rules("moe", "e", "0.8")] == ["triton"]
    assert (first.backend, first.generations, first.formats, first.tokens) == ("cutlass", ("hopper",), (), (1.0, 64.0))
    assert (first.spans, first.activations, first.tuned_by) == ({"ep": (2.0, 8.0)}, "", "")
    assert (first.families, second.families) == ((), ("llama",))
    at = Situation(generation="hopper", format="fp8", mixer="latent", mode="closed")
    for family, accepted in (("llama", True), ("qwen3", False), ("", True)):  # a kernel without a model asks for none
        assert second.accepts(replace(at, family=family)) is accepted
    assert (second.formats, second.activations, second.tuned_by) == (("fp8",), "fp8", "x")
    assert (second.mixers, second.modes, second.tokens, second.spans) == (
        ("latent",),
        ("closed",),
        (0.0, float("inf")),
        {},
    )
    assert (second.fact.name, second.fact.value, second.fact.at) == ("moe_backend", "triton", "line 1")
    for ep, accepted in ((1, False), (2, True), (8, True), (9, False)):
        assert first.accepts(Situation(generation="hopper", format="bf16", degrees={"ep": ep})) is accepted
    assert not first.accepts(Situation(generation="ampere", format="bf16", degrees={"ep": 2}))
    assert backends._spellings.__wrapped__("moe") == {"triton": "triton", "tri-ton": "triton", "cutlass": "cutlass"}
    named = backends.backend_of_kernel.__wrapped__
    assert named("moe", "Grouped_Moe", "fp8") == "cutlass"
    assert named("moe", "Grouped_Moe", "bf16") == "triton"
    assert named("moe", "other", "bf16") == ""


def test_words_of_back_ends():
    assert get_backend("moe", " Triton ") == get_backend("moe", "triton") == "triton"
    with pytest.raises(UnknownName, match=r"moe_backend"):
        get_backend("moe", "no such thing")
    assert backend_of_kernel("moe", "nothing that is known", "bf16") == ""
    assert experts_by_default("nobody", "", "hopper", "bf16") == "nobody"
    for name in ("mxfp4", "mxfp4_bf16"):  # a recipe's activations do not part what is stored
        assert experts_by_default("vllm", "", "hopper", name) == experts_by_default("vllm", "", "hopper", "mxfp4")
    kinds = [r.kind for r in rules_of("vllm", "")]
    assert kinds == sorted(kinds, key=("moe", "attention", "gemm").index)


def test_the_first_rule_of_scripts_that_holds_decides(monkeypatch):
    usual = {"engine": "e", "mode": "closed", "source": SOURCE, "at": "a script"}
    rules = (
        usual
        | {"scheduler_recv_interval": 30, "ranks": (2, 8), "concurrency": (16, 64), "on": ["hopper"], "from": "0.5"},
        usual | {"scheduler_recv_interval": 20, "publisher": "https://a.example", "models": "meta/*"},
        usual | {"scheduler_recv_interval": 10, "models": "*scout*"},
    )
    monkeypatch.setattr(scripts, "_rules", lambda: rules)

    def value(setting="scheduler_recv_interval", **given):
        usual = {
            "engine": "e",
            "version": "0.6",
            "mode": "closed",
            "generation": "hopper",
            "ranks": 2,
            "concurrency": 16,
        }
        found = scripts.script_setting(setting, **(usual | given))
        return found and found.value

    assert value() == 30
    assert [value(ranks=r) for r in (1, 2, 8, 9)] == [None, 30, 30, None]
    assert [value(concurrency=c) for c in (15, 16, 64, 65)] == [None, 30, 30, None]
    assert [
        value(**{k: v}) for k, v in (("generation", "ampere"), ("version", "0.4"), ("mode", "open"), ("engine", "f"))
    ] == [None] * 4
    assert value(ranks=1, published="https://a.example/run", model="Meta/Llama") == 20
    assert value(ranks=1, published="https://b.example", model="Meta/Llama") is None
    assert value(ranks=1, model="a/Scout-17B") == 10
    assert value("num_distinct_prompts") is None
