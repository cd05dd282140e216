"""What is asked of `orrery kernel`, checked."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from orrery.scenario.fields_kernel import KERNEL_BY_NAME
from orrery.scenario.inputs import Inputs
from orrery.scenario.kinds import Count, Number, Switch, Word
from orrery.scenario.validation_errors import limited


def _at(name: str) -> Any:
    return Field(**limited(KERNEL_BY_NAME[name]))


def _texts(value: Any) -> Any:
    """One text is a list of one."""
    return (value,) if isinstance(value, str) else value


Words = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=4096)], ...], BeforeValidator(_texts)]


class KernelQuestion(Inputs):
    """An operator, where it runs, its sizes, and what else was said."""

    op: Word = None
    device: Word = None
    format: Word = None
    weights: Word = None
    activations: Word = None
    kv: Word = None
    variant: Word = None
    engine: Word = None
    phase: Word = None
    routing: Word = None
    fabric: Word = None
    tensors: Word = None
    model: Word = None
    hosts: Word = None
    chain: Word = None
    m: Count = _at("m")
    n: Count = _at("n")
    k: Count = _at("k")
    batch: Count = _at("batch")
    groups: Count = _at("groups")
    query_tokens: Count = _at("query_tokens")
    context_tokens: Count = _at("context_tokens")
    num_heads: Count = _at("num_heads")
    num_kv_heads: Count = _at("num_kv_heads")
    head_size: Count = _at("head_size")
    value_head_size: Count = _at("value_head_size")
    window_tokens: Count = _at("window_tokens")
    tokens: Count = _at("tokens")
    width: Count = _at("width")
    depth: Count = _at("depth")
    rows_per_load: Count = _at("rows_per_load")
    hidden_size: Count = _at("hidden_size")
    ffn_size: Count = _at("ffn_size")
    num_experts: Count = _at("num_experts")
    experts_per_token: Count = _at("experts_per_token")
    tp: Count = _at("tp")
    ep: Count = _at("ep")
    keys: Count = _at("keys")
    key_bits: Count = _at("key_bits")
    log2_rows: Count = _at("log2_rows")
    entries_per_row: Count = _at("entries_per_row")
    seed: Count = _at("seed")
    seq_len: Count = _at("seq_len")
    gates: Count = _at("gates")
    ops: Count = _at("ops")
    pixels: Count = _at("pixels")
    inputs: Count = _at("inputs")
    outputs: Count = _at("outputs")
    taps: Count = _at("taps")
    devices: Count = _at("devices")
    devices_per_node: Count = _at("devices_per_node")
    message_bytes: Number = _at("message_bytes")
    leaves: Count = _at("leaves")
    spines: Count = _at("spines")
    hosts_per_leaf: Count = _at("hosts_per_leaf")
    draws: Count = _at("draws")
    wide_frac: Number = _at("wide_frac")
    launch_s: Number = _at("launch_s")
    meeting_s: Number = _at("meeting_s")
    register_frac: Number = _at("register_frac")
    cold: Switch = None
    not_causal: Switch = None
    peer_to_peer: Switch = None
    measure: Switch = None
    sweep: Words = ()
