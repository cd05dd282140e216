"""Checked inputs of `orrery kernel`."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from orrery.scenario.fields_kernel import KERNEL_BY_NAME
from orrery.scenario.inputs import Inputs
from orrery.scenario.kinds import Count, Number, Switch, Word


def _texts(value: Any) -> Any:
    """One text is a list of one."""
    return (value,) if isinstance(value, str) else value


Words = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=4096)], ...], BeforeValidator(_texts)]


class KernelQuestion(Inputs, table=KERNEL_BY_NAME):
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
    tree: Word = None
    m: Count = None
    n: Count = None
    k: Count = None
    batch: Count = None
    groups: Count = None
    query_tokens: Count = None
    context_tokens: Count = None
    num_heads: Count = None
    num_kv_heads: Count = None
    head_size: Count = None
    value_head_size: Count = None
    window_tokens: Count = None
    tokens: Count = None
    width: Count = None
    depth: Count = None
    rows_per_load: Count = None
    hidden_size: Count = None
    ffn_size: Count = None
    num_experts: Count = None
    experts_per_token: Count = None
    tp: Count = None
    ep: Count = None
    keys: Count = None
    key_bits: Count = None
    log2_rows: Count = None
    entries_per_row: Count = None
    seed: Count = None
    seq_len: Count = None
    state_size: Count = None
    gates: Count = None
    ops: Count = None
    pixels: Count = None
    inputs: Count = None
    outputs: Count = None
    taps: Count = None
    devices: Count = None
    devices_per_node: Count = None
    devices_per_port: Count = None
    message_bytes: Number = None
    leaves: Count = None
    spines: Count = None
    hosts_per_leaf: Count = None
    flow_parts: Count = None
    draws: Count = None
    wide_frac: Number = None
    launch_s: Number = None
    meeting_s: Number = None
    register_frac: Number = None
    on_chip_flops_per_s: Number = None
    bus_bytes_per_s: Number = None
    port_bytes_per_s: Number = None
    host_memory_bytes_per_s: Number = None
    card_bytes_per_s: Number = None
    peer_bytes_per_s: Number = None
    card_message_s: Number = None
    cold: Switch = None
    not_causal: Switch = None
    peer_to_peer: Switch = None
    measure: Switch = None
    sweep: Words = ()
