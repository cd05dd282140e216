"""What tests of a training layer share."""

import pytest
from toy_layer import seconds

from orrery import kernels


@pytest.fixture
def asked(monkeypatch):
    """The machine of ``toy_layer``; what it was asked for is kept."""
    found = []

    def predict(op, device, engine=""):
        found.append(op)
        return seconds(op)

    monkeypatch.setattr(kernels, "predict", predict)
    return found
