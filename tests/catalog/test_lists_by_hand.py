"""Prices of APIs, defaults of autoscalers and orchestrators' files against the lines that they are read from."""

import pytest

from orrery.base.errors import UnknownName
from orrery.catalog.api_prices import api_price_names, get_api_price
from orrery.catalog.autoscalers import autoscaler_facts, facts_of, spot_notice_s
from orrery.catalog.deploy import deploy_facts, kind_of, kinds


def test_a_price_is_of_one_token():
    """Flash off-peak: 0.15, 0.60 and, where the cache has it, 0.003 dollars a million."""
    found = get_api_price("DeepSeek/V4-Flash-off-peak")
    assert (found.name, found.as_of) == ("deepseek/v4-flash-off-peak", "2026-10-27")
    assert found.price.input_usd_per_tokens == pytest.approx(1.5e-7)
    assert found.price.output_usd_per_tokens == pytest.approx(6e-7)
    assert found.price.cached_usd_per_tokens == pytest.approx(3e-9)
    assert [fact.name for fact in found.facts] == ["input_million_usd", "output_million_usd", "cached_million_usd"]
    assert [float(fact.value) for fact in found.facts] == [0.15, 0.6, 0.003]


def test_without_a_price_of_its_own_what_is_cached_costs_as_much_as_what_is_new():
    found = get_api_price("deepinfra/llama-3.3-70b")
    assert found.price.cached_usd_per_tokens == found.price.input_usd_per_tokens == pytest.approx(1e-7)
    assert found.price.output_usd_per_tokens == pytest.approx(3.2e-7)
    assert len(found.facts) == 2
    assert list(api_price_names()) == sorted(api_price_names())
    assert "anthropic/claude-opus-5" in api_price_names()
    with pytest.raises(UnknownName, match=r"deepinfra/llama-3\.3-70b"):
        get_api_price("deepinfra/llama-3.3-7b")


def test_facts_of_an_autoscaler_are_its_own():
    assert sorted(fact.name for fact in facts_of("keda-queue")) == [
        "keda_queue_cooldown_s",
        "keda_queue_down_window_s",
        "keda_queue_period_s",
        "num_keda_queue_threshold_requests",
    ]
    assert len(facts_of("hpa")) == 8
    assert facts_of("nobody") == ()
    assert autoscaler_facts()["hpa_down_window_s"].value == 300.0
    assert spot_notice_s() == 120.0


def test_kinds_of_orchestrators_files():
    service = kind_of("Service")
    assert (service.name, service.api) == ("Service", "v1")
    assert service.fields == ("metadata.name", "spec.selector.*", "spec.ports[].port", "spec.ports[].targetPort")
    assert (kind_of("HorizontalPodAutoscaler").api, kind_of("ScaledObject").api) == (
        "autoscaling/v2",
        "keda.sh/v1alpha1",
    )
    assert all(name == kind.name and kind.source.url for name, kind in kinds().items())
    assert all(fact.source or fact.basis == "assumed" for fact in deploy_facts().values())
