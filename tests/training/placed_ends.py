"""Graphs of a model's two ends, and every operator on slices of real arrays: what placements are proved on."""

from orrery.training.placement.graph import Graph, Op, Sizes, Tensor, matmul


def output_head(s: Sizes) -> Graph:
    """The projection to the vocabulary and the loss: row maximum, sum of exponentials and the label's own logit."""
    t, h, v = s.num_tokens, s.hidden_size, s.vocab_size
    tensors = (
        Tensor(name="x", letters="th", shape=(t, h), role="input"),
        Tensor(name="w_head", letters="hv", shape=(h, v), role="weight"),
        Tensor(name="logits", letters="tv", shape=(t, v)),
        Tensor(name="labels", letters="t", shape=(t,), role="input", has_gradient=False, bytes_per_element=8.0),
        Tensor(name="losses", letters="t", shape=(t,), bytes_per_element=4.0),
    )
    ops = (
        matmul("head", "x", "w_head", "logits", "thv"),
        Op(
            name="loss",
            kind="cross_entropy",
            inputs=("logits", "labels"),
            output="losses",
            splits="tv",
            inner="v",
            num_inner_vectors=3,
            indexed="v",
        ),
    )
    return Graph(tensors={x.name: x for x in tensors}, ops=ops, pieces=s.pieces)


def embedding(s: Sizes) -> Graph:
    """A table of one row a word, looked up; a device without the row answers zeros, so a cut vocabulary sums up."""
    t, h, v = s.num_tokens, s.hidden_size, s.vocab_size
    tensors = (
        Tensor(name="ids", letters="t", shape=(t,), role="input", has_gradient=False, bytes_per_element=8.0),
        Tensor(name="w_words", letters="vh", shape=(v, h), role="weight"),
        Tensor(name="x", letters="th", shape=(t, h)),
    )
    ops = (Op(name="embedding", kind="embedding", inputs=("w_words", "ids"), output="x", splits="tvh", indexed="v"),)
    return Graph(tensors={x.name: x for x in tensors}, ops=ops, pieces=s.pieces)
