"""Which backend measures here."""

from orrery.base.errors import UnknownName
from orrery.calibrate.measure.backends.backend import Backend
from orrery.calibrate.measure.backends.on_numpy import NumpyBackend
from orrery.calibrate.measure.backends.on_pytorch import PytorchBackend
from orrery.calibrate.measure.backends.torch_device import torch_devices


def find_backend(words: str) -> Backend:
    """By name: "numpy", "pytorch" (its first device), "pytorch:cuda:1"; blank is a GPU where there is one, else NumPy.

    Raises UnknownName for any other word, and OrreryError where PyTorch or the device is not there.
    """
    name, _, device = words.partition(":")
    seen = torch_devices() if name in ("", "pytorch") else ()
    if name == "" and seen and seen[0] != "cpu":
        name = "pytorch"
    match name:
        case "" | "numpy" if not device:
            return NumpyBackend()
        case "pytorch":
            return PytorchBackend(device or next(iter(seen), "cpu"))
        case _:
            raise UnknownName("backend", words, ("numpy", "pytorch", *(f"pytorch:{d}" for d in torch_devices())))
