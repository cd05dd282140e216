"""Up-links, and models of speech and of rankings by name: by hand."""

from math import exp, sqrt

import numpy as np
import pytest

from orrery.base.errors import UnknownName
from orrery.catalog import links
from orrery.catalog.recommendation import get_recommendation, is_recommendation
from orrery.catalog.speech import find_speech, get_speech, speech_names


def test_an_uplink_is_drawn_around_its_median():
    """x1 = rho x0 + sqrt(1 - rho^2) z1 with rho = e^-(1 / 10); rates are the median times 2^x."""
    line = links.uplink("5g")
    assert (line.each_way_bytes_per_s, line.latency_s, line.spread_ratio, line.hold_s) == (2.635e6, 0.03, 2.0, 10.0)
    assert (line.basis, links.uplink("4g").basis) == ("stated", "assumed")
    times, rates = line.trace(2.5, seed=3)
    z, rho = np.random.default_rng(3).standard_normal(3), exp(-0.1)
    x1 = rho * z[0] + sqrt(1 - rho * rho) * z[1]
    assert times.tolist() == [0.0, 1.0, 2.0]
    assert rates == pytest.approx(
        2.635e6 * 2.0 ** np.array([z[0], x1, rho * x1 + sqrt(1 - rho * rho) * z[2]]), rel=1e-12
    )
    assert line.trace(0.0, seed=3)[0].tolist() == [0.0]
    assert line.trace(1.0, seed=3)[0].tolist() == [0.0]


def test_models_of_speech_and_of_rankings_by_name():
    name = next(n for n in speech_names() if n.endswith("whisper-large-v3"))
    for spelled in ("whisper-large-v3", "Whisper large v3", "WHISPER_LARGE.V3", name):
        assert find_speech(spelled) == name
    assert get_speech("whisper large-v3").name == name
    assert find_speech("llama-3.1-8b") is None
    with pytest.raises(UnknownName):
        get_speech("whisper-gigantic")
    assert is_recommendation("DLRM-DCNv2")
    assert not is_recommendation(None)
    assert not is_recommendation("llama-3.1-8b")
    model = get_recommendation("DLRM-dcnv2")
    assert model.name == "dlrm-dcnv2"
    assert all(isinstance(getattr(model, part), tuple) for part in ("bottom", "top", "rows", "lookups"))
    with pytest.raises(UnknownName):
        get_recommendation("dlrm-x")
