"""Backpropagation: one loss at the top, and its gradient through every layer. [rumelhart-1986]"""

from orrery.training.small.data import Dataset, Floats, Ints
from orrery.training.small.learning import Adam, Settings, Trained, batches, until_no_better
from orrery.training.small.network import Layer, accuracy_frac, affine_gradients, cross_entropy, layers, relu


def train(data: Dataset, settings: Settings) -> Trained:
    """Until the validation loss no longer improves."""
    network = layers((data.train.rows.shape[1], *settings.hidden, data.num_classes), settings.seed, "backpropagation")
    arrays = [array for layer in network for array in layer]
    adam = Adam(arrays, settings.learning_rate_ratio)

    def one_pass(passed: int) -> float:
        for inputs, labels in batches(data.train, settings, "backpropagation", passed):
            adam.step(gradients(network, inputs, labels)[1])
        return cross_entropy(activations(network, data.validation.rows)[-1], data.validation.labels)[0]

    losses = until_no_better(one_pass, arrays, settings)
    accuracy = accuracy_frac(activations(network, data.test.rows)[-1], data.test.labels)
    return Trained(accuracy_frac=accuracy, passes=len(losses), validation_losses=tuple(losses))


def activations(network: list[Layer], inputs: Floats) -> list[Floats]:
    """Inputs of every layer, then the logits: all kept, because the way back reads them."""
    saved = [inputs]
    for layer in network[:-1]:
        saved.append(relu(layer(saved[-1])))
    return [*saved, network[-1](saved[-1])]


def gradients(network: list[Layer], inputs: Floats, labels: Ints) -> tuple[float, list[Floats]]:
    """The loss, and its gradient for the weights and biases of every layer."""
    saved = activations(network, inputs)
    loss, outgoing = cross_entropy(saved[-1], labels)
    return loss, backward(network, saved, outgoing)


def backward(network: list[Layer], saved: list[Floats], outgoing: Floats) -> list[Floats]:
    """Gradients of every layer's weights and biases, from what ``activations`` kept and the gradient of its last."""
    found: list[Floats] = []
    for i in range(len(network) - 1, -1, -1):
        found = affine_gradients(saved[i], outgoing) + found
        if i:
            outgoing = (outgoing @ network[i].weights.T) * (saved[i] > 0.0)
    return found
