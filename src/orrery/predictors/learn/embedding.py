"""A regressor that is taught to learn new devices: it knows a device by how fast reference inputs run on it.

Two encoders, of the input and of the device's embedding z, feed a trunk whose weights z scales before any gradient:

    w = w0 (1 + s g(z)),   then  w <- w - a dL/dw  a few times on the device's own samples,

with a a learned rate for every number. All of it is trained on the loss after those steps, over many devices at a time
and through the steps themselves. The form is that of [lee-2021-help] without its sampled modulator; devices are the
first axis throughout, so that one pass serves all of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from orrery.predictors.learn.extra import learning_package
from orrery.predictors.learn.network import Array, Perceptron

MODULATION = 0.1
FIRST_RATE = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptive:
    """Sizes of the regressor, and how many gradient steps it takes on a new device."""

    inputs: int
    references: int
    hidden: int
    updates: int

    @property
    def parts(self) -> dict[str, Perceptron]:
        """Encoders of the input and of the device, the trunk, and what scales its layers' inputs."""
        h = self.hidden
        trunk = Perceptron(widths=(2 * h, 2 * h, 2 * h, 1))
        return {
            "input": Perceptron(widths=(self.inputs, h, h)),
            "device": Perceptron(widths=(self.references, h, h)),
            "trunk": trunk,
            "scales": Perceptron(widths=(self.references, 10, sum(trunk.widths[:-1]))),
        }

    def start(self, rng: np.random.Generator) -> dict[str, Array]:
        """Random weights, and one learning rate for every number that is adapted."""
        found = {f"{part} {n}": a for part, net in self.parts.items() for n, a in net.start(rng).items()}
        found |= {f"rate {name}": np.full_like(a, FIRST_RATE) for name, a in found.items() if _is_adapted(name)}
        return found

    def adapted(self, parameters: Mapping[str, Any], z: Any, x: Any, y: Any) -> dict[str, Any]:
        """Parameters of every device after its steps on ``x`` (device, sample, input) and ``y`` (device, sample)."""
        grad = learning_package("autograd").grad

        def error(now: Mapping[str, Any]) -> Any:
            return _squared_error(self.predict(now, z, x), y)

        own = self._modulated(parameters, z)
        for _ in range(self.updates):
            gradients = grad(error)(own)
            own = {name: a - parameters[f"rate {name}"] * gradients[name] for name, a in own.items()}
        return own

    def predict(self, own: Mapping[str, Any], z: Any, x: Any) -> Any:
        """Outputs for every device and input, with the parameters that belong to each device."""
        anp = learning_package("autograd.numpy")
        nets = self.parts
        seen = anp.maximum(nets["input"](own, x, "input "), 0)
        device = anp.maximum(nets["device"](own, z[:, None, :], "device "), 0)
        both = anp.concatenate([seen, device + 0 * seen], axis=2)
        return nets["trunk"](own, both, "trunk ")[:, :, 0]

    def loss(self, parameters: Mapping[str, Any], z: Any, x: Any, y: Any, more_x: Any, more_y: Any) -> Any:
        """On other inputs of each device, once adapted."""
        own = self.adapted(parameters, z, x, y)
        return _squared_error(self.predict(own, z, more_x), more_y) / len(z)

    def _modulated(self, parameters: Mapping[str, Any], z: Any) -> dict[str, Any]:
        """A copy for every device, the trunk's weights scaled by row."""
        anp = learning_package("autograd.numpy")
        copies = anp.ones((len(z), 1, 1), dtype=np.float32)
        own = {name: a * copies for name, a in parameters.items() if _is_adapted(name)}
        scales, first = self.parts["scales"](parameters, z, "scales "), 0
        for i, width in enumerate(self.parts["trunk"].widths[:-1]):
            own[f"trunk w{i}"] = own[f"trunk w{i}"] * (1 + MODULATION * scales[:, first : first + width, None])
            first += width
        return own


def _is_adapted(name: str) -> bool:
    return not name.startswith(("scales", "rate"))


def _squared_error(predicted: Any, targets: Any) -> Any:
    """The mean over inputs, summed over devices, whose gradients so stay apart."""
    return ((predicted - targets) ** 2).mean(axis=1).sum()


def as_batch(a: Any) -> Any:
    """One device's array as that of one device among others."""
    return np.asarray(a, dtype=np.float32)[None]
