"""The settings of `orrery kernel`; nothing heavy is imported, so that help stays quick."""

from orrery.scenario.setting import Setting, count, number, switch, word

OPERATORS: dict[str, str] = {
    "gemm": "m n k [batch]; --weights, --activations: 1 to 8 bits, bipolar ones, blocks of two widths",
    "grouped-gemm": "m n k groups",
    "conv": "pixels inputs outputs [taps]: positions, channels, and 9 for 3 x 3",
    "moe": "tokens hidden_size ffn_size num_experts experts_per_token [tp ep]; --routing balanced, random, power_law_X",
    "attention": "query_tokens num_heads [batch context_tokens num_kv_heads head_size window_tokens]",
    "latent-attention": "query_tokens num_heads [batch context_tokens head_size value_head_size]",
    "softmax": "tokens width",
    "norm": "tokens width",
    "rope": "tokens width",
    "gated-activation": "tokens width",
    "add": "tokens width",
    "embedding": "tokens width",
    "sample": "tokens width",
    "quantize": "tokens width",
    "gather": "tokens width: rows of a table",
    "sort": "keys [key_bits]",
    "spgemm": "log2_rows [entries_per_row seed]: two R-MAT matrices",
    "rnn": "hidden_size seq_len [batch num_heads gates]; --launch-s, --meeting-s",
    "tree-recurrence": "state_size [head_size num_heads batch]; --tree: a recurrent layer over draft tokens",
    "chain": "ops pixels [batch]; --launch-s; or --chain of products on a dataflow device",
    "fused-mlp": "width depth batch [rows_per_load]; --phase inference, forward or training",
    "launch-queue": "[batch query_tokens]; --model, --hosts: prompts kernel by kernel, and when the device takes over",
    "instruction": "n [m k]: one matrix instruction of a processor, or as many of a warp as do its work",
    "block-exchange": "message_bytes: that every processor of a GPU hands to another one",
    "gemm-reduce-scatter": "m n k devices: k of one device",
    "all-reduce": "devices message_bytes [devices_per_node]; --fabric leaf-spine with leaves, spines, hosts_per_leaf; "
    "--fabric host-bus with rates of bus, port, host memory and card",
    "all-gather": "as all-reduce",
    "reduce-scatter": "as all-reduce",
    "all-to-all": "as all-reduce",
    "permutation": "message_bytes leaves hosts_per_leaf [spines flow_parts draws]; --fabric: every host sends to one",
    "broadcast": "devices message_bytes [devices_per_node]",
}
"""Operator -> its sizes, those with a default in brackets."""

LARGEST = 2.0**40


def _size(name: str, help: str, example: int, *, least: float = 1, most: float = LARGEST) -> Setting:
    return count(name, help, example, least=least, most=most)


SIZES: tuple[Setting, ...] = (
    _size("m", "Rows of the left operand and of the result.", 4096),
    _size("n", "Columns of the result.", 4096),
    _size("k", "Elements that one result sums over.", 4096),
    _size("batch", "Products, sequences or arrays side by side.", 8),
    _size("groups", "Products of a grouped product.", 8),
    _size("query_tokens", "New tokens of a sequence (1: a decoding step).", 2048),
    _size("context_tokens", "Tokens that are attended to, new ones included (default: the new ones).", 8192),
    _size("num_heads", "Heads.", 32),
    _size("num_kv_heads", "Heads of keys and values (default: as many).", 8),
    _size("head_size", "Features of a head.", 128),
    _size("value_head_size", "Features of a head's values (default: as keys).", 128),
    _size("window_tokens", "Tokens that a sliding window keeps (default: all).", 4096, least=0),
    _size("tokens", "Rows of activations.", 4096),
    _size("width", "Elements of a row; the width of a perceptron.", 4096),
    _size("depth", "Weight matrices of a perceptron.", 4),
    _size("rows_per_load", "Rows that share one load of a perceptron's weights.", 128),
    _size("hidden_size", "Features of a token, or of a recurrent state over all heads.", 4096),
    _size("ffn_size", "Features between an expert's matrices.", 1536),
    _size("num_experts", "Experts.", 128),
    _size("experts_per_token", "Experts that a token goes to.", 8),
    _size("tp", "Devices that cut every expert.", 1),
    _size("ep", "Devices that share the experts.", 8),
    _size("keys", "Keys to sort.", 268435456),
    _size("key_bits", "Bits of a key.", 32, most=1024),
    _size("log2_rows", "A sparse matrix has 2 to that many rows.", 12, most=16),
    _size("entries_per_row", "Entries of a row, drawn; those drawn twice count once.", 8, most=4096),
    _size("seed", "Seed of everything that is drawn (default 0).", 0, least=0, most=2.0**53),
    _size("seq_len", "Tokens that a recurrence goes through.", 1024),
    _size("state_size", "Features of a recurrent head's state.", 128, most=65536),
    _size("gates", "Pre-activations of a recurrent cell (an LSTM has 4).", 4, most=64),
    _size("ops", "Functions of a chain.", 100),
    _size("pixels", "Elements of one array of a chain.", 7200),
    _size("inputs", "Channels that enter a convolution.", 64),
    _size("outputs", "Channels that leave it.", 64),
    _size("taps", "Positions of its window (9 for 3 x 3).", 9, most=10_000),
    _size("devices", "Devices that take part.", 8),
    _size("devices_per_node", "Of them in one node (default: the device's own).", 8),
    _size("devices_per_port", "host-bus: devices behind one port of the host's root complex (default 1).", 2, most=64),
    number("message_bytes", "Whole buffer of one device, as nccl-tests counts it.", 64e6, most=1e15, metavar="BYTES"),
    _size("leaves", "Leaf switches of the fabric.", 16, most=4096),
    _size("spines", "Spine switches of the fabric.", 8, most=4096),
    _size("hosts_per_leaf", "Hosts below a leaf.", 8, most=4096),
    _size("flow_parts", "permutation, singlepath: parts of a flow (0: as many as help).", 4, least=0, most=4096),
    _size("draws", "Placements and hashes that are drawn.", 64, most=10_000),
)
"""Sizes that can be swept."""


def _rate(name: str, help: str, example: float) -> Setting:
    return number(name, help, example, most=1e15, metavar="BYTES")


WORDS: tuple[Setting, ...] = (
    word("device", "Devices, comma-separated: names or files.", "h100-sxm,mi300x", "NAME[,NAME]"),
    word(
        "format", "Number formats, comma-separated (default: what the operator usually runs in).", "bf16,fp8", "F,F,…"
    ),
    word(
        "weights",
        "gemm: a format of the weights alone, such as int5/128:fp16, bipolar2, int4.",
        "int5/128:fp16",
        "FORMAT",
    ),
    word("activations", "gemm: of the activations: bipolar2, int8, int4+int8 (blocks of both).", "int4+int8", "FORMAT"),
    word("kv", "attention: format of the cache (default: the operands').", "fp8", "FORMAT"),
    word(
        "variant",
        "Ways of computing it, comma-separated (default: all that the device can).",
        "serial,ping-pong",
        "NAME,…",
    ),
    word(
        "engine", "Whose kernels, comma-separated, or 'all' that were measured on the device.", "vllm,sglang", "NAME,…"
    ),
    word("phase", "attention: prefill or decode; fused-mlp: inference, forward or training.", "decode", "NAME"),
    word("routing", "moe: balanced, random, power_law_1.2; a fabric: spray, ecmp, singlepath.", "spray,ecmp", "NAME,…"),
    word(
        "fabric",
        "Network between hosts: leaf-spine, or fat-tree (as many spines as hosts below a leaf); all-reduce: host-bus "
        "(devices on the host's bus, one card a machine).",
        "leaf-spine",
        "NAME",
    ),
    word(
        "tensors",
        "Your tensors: activations (tokens, channels) for gemm of int4+int8; q, k and v for attention in fp8.",
        "x.npy",
        "FILE",
    ),
    word("tree", "tree-recurrence: children of a token at each level (default 4,2,1).", "4,2,2,1", "N,N,…"),
    word("model", "launch-queue: the model whose layers are launched.", "llama-3.2-1b", "NAME|PATH"),
    word("hosts", "launch-queue: processors that launch, comma-separated: grace, xeon, epyc.", "grace,xeon", "NAME,…"),
    word(
        "chain",
        "chain: products on a dataflow device, rows x widths: 512x768x3072x!768, ! where all input is "
        "needed first; or a .txt file of it.",
        "512x768x3072x768",
        "SIZES|FILE",
    ),
)

NUMBERS: tuple[Setting, ...] = (
    number(
        "wide_frac",
        "gemm of int4+int8: share of channel blocks with eight bits.",
        0.17,
        most=1.0,
        excludes_least=False,
        metavar="FRAC",
    ),
    number(
        "launch_s",
        "What one launch takes, nothing hidden (default: assumed, and said).",
        5e-6,
        most=1.0,
        excludes_least=False,
        metavar="SECONDS",
    ),
    number(
        "meeting_s",
        "rnn: all blocks of a kernel wait for each other (default: assumed, and said).",
        1.5e-6,
        most=1.0,
        excludes_least=False,
        metavar="SECONDS",
    ),
    number(
        "register_frac",
        "rnn: share of the registers that keep recurrent matrices (default 0.5).",
        0.5,
        most=1.0,
        excludes_least=False,
        metavar="FRAC",
    ),
    number(
        "on_chip_flops_per_s",
        "fused-mlp: what reading weights on chip lets through (default: no limit).",
        393e12,
        most=1e20,
        metavar="FLOP/S",
    ),
    _rate("bus_bytes_per_s", "host-bus: one device's bus, one way (default: its host link).", 24e9),
    _rate(
        "port_bytes_per_s",
        "host-bus: a port of the root complex, both ways together (default: its devices' links).",
        37.5e9,
    ),
    _rate(
        "host_memory_bytes_per_s",
        "host-bus: the host's memory, reading and writing together (default: no limit).",
        409.6e9,
    ),
    _rate("card_bytes_per_s", "host-bus: the machine's network card, one way (default: the device's own).", 25e9),
    _rate("peer_bytes_per_s", "host-bus: from a device straight to the card (default: the slower of both).", 9.6e9),
    number("card_message_s", "host-bus: latency of one message between machines.", 1e-5, most=1.0, metavar="SECONDS"),
)

SWITCHES: tuple[Setting, ...] = (
    switch("cold", "Operands come from memory, as in a model (default: from whatever cache a loop leaves them in)."),
    switch("not_causal", "attention: every token attends to all."),
    switch("peer_to_peer", "Collectives over PCIe: devices read each other's memory (default: through the host's)."),
    switch("measure", "Time it here too, where device and library are, and print both."),
)

SWEEP = Setting(
    name="sweep",
    kind="words",
    metavar="SIZE=A:B:STEP",
    example='["m=1:4096:x2"]',
    help="Several sizes: m=1,16,256; m=1:4096:x2 (times 2); m=0:512:+64 (plus 64); m=1:4096:9 (nine, in even ratios). "
    "Several sweeps make a grid.",
)

OPERATOR = word("op", "The operator.", "gemm", "OP")

KERNEL_SETTINGS: tuple[Setting, ...] = (*WORDS, *SIZES, *NUMBERS, *SWITCHES)
"""In the order of the help page."""

KERNEL_BY_NAME = {s.name: s for s in (OPERATOR, *KERNEL_SETTINGS, SWEEP)}

ALIASES = {
    "formats": "format",
    "variants": "variant",
    "hidden": "hidden_size",
    "heads": "num_heads",
    "kv_heads": "num_kv_heads",
    "engines": "engine",
    "message_size": "message_bytes",
}
"""Other names that these settings are taken by."""
