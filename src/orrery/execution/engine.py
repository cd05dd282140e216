"""A serving engine: its defaults, dated rules of which kernels it runs, and what it costs the host."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Literal

from orrery.base.cost import Spread
from orrery.base.sources import Fact

Kind = Literal["moe", "attention", "gemm"]
KINDS: tuple[Kind, ...] = ("moe", "attention", "gemm")

ENDLESS = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Inputs of an engine's choice of kernel."""

    generation: str
    format: str  # of the stored weights; of the cache, for attention
    mixer: str = ""  # "softmax", "sinks", "latent", "sparse-latent"
    mode: str = ""  # the kind of traffic that it is set up for
    family: str = ""  # of the model (config's model_type); blank = a kernel without a model, which any rule may run
    degrees: Mapping[str, int] = field(default_factory=dict[str, int])  # tp, dp, ep


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BackendRule:
    """One line of what an engine runs; empty conditions accept everything."""

    kind: Kind
    backend: str
    fact: Fact
    generations: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    mixers: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    families: tuple[str, ...] = ()  # where the engine chooses by the model's architecture
    spans: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])  # of degrees
    tokens: tuple[float, float] = (0.0, ENDLESS)  # of a step on one rank, where the kernel is chosen by them
    activations: str = ""  # what the kernel multiplies the weights with, where the engine decides it
    tuned_by: str = ""  # the engine whose timings show the kernel as a server runs it, where this one's do not

    def accepts(self, at: Situation) -> bool:
        """Whether the rule holds there for some number of tokens."""
        words = (
            (self.generations, at.generation),
            (self.formats, at.format),
            (self.mixers, at.mixer),
            (self.modes, at.mode),
            (self.families if at.family else (), at.family),
        )
        return all(not known or word in known for known, word in words) and all(
            low <= at.degrees.get(degree, 1) <= high for degree, (low, high) in self.spans.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Engine:
    """Defaults that a blank cell or flag takes, and the constants of the host's part of a step.

    A step costs the host ``step_s`` + ``per_sequence_s`` x sequences; with asynchronous scheduling
    (``overlap_frac`` = 1) only what exceeds the device's time is exposed. A step of at most ``max_num_graph_seqs``
    decodes is one CUDA graph; any other is launched kernel by kernel (``launch_s`` each) while the device works,
    but for steps of few tokens that some releases replay in pieces.
    """

    name: str  # "vllm"
    version: str  # "0.11"; "" = any
    kernels: str  # whose measured kernels it runs: "tensorrt-llm", "vllm", "sglang", …
    memory_utilization_frac: float  # share of device memory it may fill
    is_utilization_of_free: bool  # True: a share of what is free after weights (TensorRT-LLM)
    max_num_seqs: int
    max_num_batched_tokens: int
    block_tokens: int
    has_cuda_graphs: bool
    has_mixed_steps: bool  # prompts and decodes share a step; otherwise prompts run alone and decodes wait
    has_prefix_caching: bool
    step_s: float
    per_sequence_s: float
    per_layer_s: float  # on the device between measured kernels, per layer: starts, and small kernels nobody measured
    overlap_frac: float
    request_s: float  # front end: from the request's arrival to its place in the queue, and back with the first token
    context_bytes: float  # driver context, library workspaces, CUDA graphs: outside weights, cache and activations
    shared_beside_tokens: int = 0  # the largest step whose shared experts run beside the routed ones; 0 = none
    computes_whole_selection: bool = False  # prompts behind an indexer pay for all that it may select, however short
    sampling_s: float = 0.0  # of a sequence, between its logits and the next step: nothing hides it
    launch_s: float = 0.0  # the host's work for one kernel, in a step that is no CUDA graph
    max_num_graph_seqs: int = 512  # the largest captured batch of decodes; larger ones are launched kernel by kernel
    max_num_wide_graph_seqs: int = 0  # the same where tensors are cut over four devices or more; 0 = as on fewer
    max_num_graph_tokens: int = 0  # the largest step with prompts that is replayed in pieces, attention between them
    max_num_latent_graph_tokens: int = 0  # the same of models with latent attention; 0 = as of others
    has_plain_pieces: bool = False  # pieces are for plain steps alone (``execution.host.is_plain``)
    runs_modules: bool = False  # operators are launched one by one, as a Python library's modules call them
    runs_tensors: bool = False  # operations of a graph are kernels over activations in 32 bits
    unpacks_weights: bool = False  # narrow weights are turned to 16 bits before they meet a prompt
    sums_in_16_bits: bool = False  # products of 16 bits are summed in 16 bits, where that is quicker
    keeps_scores: bool = False  # attention over prompts writes its scores to memory
    pass_tokens: int = 0  # of a prompt between two waits for all stages of a pipeline; 0 = it waits at the end alone
    num_launches_4bit: int = 0  # launches of a product with 4-bit weights beyond one, where modules are run
    num_launches_8bit: int = 0  # the same with 8-bit weights
    per_prompt_token_s: float = 0.0  # front end: reading one token of a prompt (text into tokens, and on to the engine)
    handover_s: float = 0.0  # the second front end, where prompts and outputs have servers of their own
    memory_ratio: float = 1.0  # how much longer memory-bound kernels take than constants borrowed from others say
    scales_measured: bool = True  # that holds for kernels measured on the device too; False: for nobody's alone
    compute_ratio: float = 1.0  # the same for compute-bound ones, of measured kernels also in a step over in a loop
    unit_bytes_per_s: float = inf  # that one compute unit reads at most, in kernels borrowed from others
    reserves_output: bool = False  # admits a request only if its whole answer fits in the cache (no eviction)
    reserves_cache: bool = False  # takes the memory of the whole cache at the start, filled or not
    splits_layers: bool = False  # several devices take runs of layers in turn, where the user does not say how to cut
    kv_follows_weights: str = ""  # weights whose checkpoints bring an FP8 cache: "fp8" (all that run in it), "nvfp4"
    sparse_kv: str = ""  # cache of latent attention behind an indexer, where nobody says; "" = as that of others
    sampling_logit_bytes: float = 4.0  # alive at the peak of sampling; 4: one FP32 logit
    is_static_share: bool = False  # the share is of weights and cache; activations live in what it leaves
    has_eras: bool = True  # False: its releases are not told apart, in defaults or in constants
    kept_format: str = ""  # of weights that a quantised checkpoint keeps in 16 bits, where its files round those too
    usual_weights: str = ""  # format of the weights that it loads where nobody says; "" = the checkpoint's own
    max_num_server_seqs: Mapping[str, int] = field(default_factory=dict[str, int])  # by family, over all ranks
    state_room_frac: float = 0.0  # room of recurrent states, as a share of the keys' and values'; 0 = as needed
    num_states_each: int = 1  # states of a sequence: its own, and what a prefix cache keeps and copies from
    caches_shared_layers: bool = (
        False  # layers that reuse another's keys and values have room of their own all the same
    )
    shares_max_num_seqs: bool = False  # its flag is of a whole server, whose attention ranks share it out
    max_num_drafted_seqs: int = 0  # of a server whose answers are drafted, over all ranks; 0 = as without drafts
    window_room_frac: float = 0.0  # room of layers with a window, as a share of the others'; 0 = each keeps its window
    window_room_fracs: Mapping[str, float] = field(
        default_factory=dict[str, float]
    )  # the same by family, where it differs
    backends: tuple[BackendRule, ...] = ()  # what it chooses by default, the first that holds decides
    num_steps_per_recv: int = 0  # decode steps between two looks for new requests; 0 = it cannot be told
    cache_pieces: str = "layers"  # what is sent in one piece: "layers", "blocks" of all layers, or "layer-blocks"
    dispatcher: str = "all-gather"  # how tokens reach experts of other ranks
    wide_dispatcher: str = "all-gather"  # the same for more ranks than a server has devices
    spreads: Mapping[str, Spread] = field(default_factory=dict[str, Spread])  # by "mode.metric"
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact])

    def entry_s(self, input_tokens: float) -> float:
        """Seconds from a request's arrival to its place in the queue, and back with the first token."""
        return self.request_s + self.per_prompt_token_s * input_tokens
