"""The tables that the loop runs on: one row a request, lane, unit, machine or deployment; their columns by name."""

import sys
from collections.abc import Callable
from typing import NamedTuple

from orrery.base.compiled import Floats, Floats2, Floats3, Ints, Ints2, Ints3
from orrery.execution.surface import _kernel as surface
from orrery.serving.simulation.memory import _kernel as memory
from orrery.serving.simulation.regions import _kernel as regions

GrantRule = Callable[[int, int, int, int, Floats], int]
OrderRule = Callable[[float, float, float, float, float, Floats], float]
RouteRule = Callable[[Floats, Floats, Floats, int, int, float, float, Floats], int]
OverlapRule = Callable[[float, float, float, float, float, float, Floats], float]
TransferRule = Callable[[float, float, float, Floats], float]
SEAMS = {
    "serving.policy": "GrantRule",
    "serving.queue": "OrderRule",
    "serving.route": "RouteRule",
    "execution.overlap": "OverlapRule",
    "execution.transfer": "TransferRule",
}
"""Calls of the loop, by the seam whose techniques answer; the last array is a technique's knobs."""

TO_COME, WAITING, PREFILLING, DECODING, MOVING, SWAPPED, DONE, REFUSED, FAILED = range(9)
"""States of a request."""
BOTH, PROMPTS, ANSWERS = range(3)
"""Work of a lane."""
NEVER = 2**62
FOREVER_S = sys.float_info.max

REQUEST = (
    "status",
    "input",
    "output",
    "computed",
    "made",
    "joined",
    "blocks",
    "shared",
    "lane",
    "turn",
    "source",
    "source_blocks",
    "source_shared",
    "lender",
    "lent",
    "first_follower",
    "next_follower",
    "session",
    "client",
    "dropped",
    "cached",
    "preempted",
    "machine",
    "lent_tokens",
    "place",
    "source_lender",
    "source_lent",
    "adapter",
    "model",
    "origin",
    "region",
)
(
    STATUS,
    INPUT,
    OUTPUT,
    COMPUTED,
    MADE,
    JOINED,
    BLOCKS,
    SHARED,
    LANE,
    TURN,
    SOURCE,
    SOURCE_BLOCKS,
    SOURCE_SHARED,
    LENDER,
    LENT,
    FIRST_FOLLOWER,
    NEXT_FOLLOWER,
    SESSION,
    CLIENT,
    DROPPED,
    CACHED,
    PREEMPTED,
    MACHINE,
    LENT_TOKENS,
    PLACE,
    SOURCE_LENDER,
    SOURCE_LENT,
    ADAPTER,
    ASKED,
    ORIGIN,
    REGION,
) = range(31)
"""``req``: tokens of prompt and answer; tokens whose keys and values exist, and answer tokens made (both, of a decoding
request, when it joined its batch at the lane's count ``joined``); blocks held, leading shared ids of them; its lane;
order of admission; the lane that computed its prompt and still holds it (-1), with what it holds; the lane whose pool
holds its last blocks (-1), and how many; who follows it; prompt tokens that compression drops; what happened to it;
tokens in lent blocks that its next step attends to; whether it holds a place of a closed loop; its adapter (-1); the
deployment that it asks for (-1: any); where its client is, and the region that it was sent to (-1: none yet)."""

WHEN = ("enter", "priority", "last", "arrived", "admitted", "first", "finish")
ENTER, PRIORITY, LAST, ARRIVED_S, ADMITTED_S, FIRST, FINISH = range(7)
"""``when``, in seconds: at the queue, so after the front end (of followers: the pause before they come); the priority;
the last token; then what is reported."""

LANES = (
    "unit",
    "pool",
    "role",
    "deployment",
    "max_seqs",
    "budget",
    "twin",
    "pooled",
    "waiting",
    "num_waiting",
    "num_decoding",
    "steps",
    "context",
    "far",
    "guests",
    "num_prompts",
    "reserved",
    "num_ready",
    "num_fresh",
    "layers_left",
    "layers_all",
    "decodes_next",
    "next_end",
    "recv_interval",
    "until_recv",
    "unseen",
    "max_ahead",
    "ahead",
    "ended",
)
(
    UNIT,
    POOL,
    ROLE,
    DEPLOYMENT,
    MAX_SEQS,
    BUDGET,
    TWIN,
    POOLED,
    WAITING_ROOT,
    NUM_WAITING,
    NUM_DECODING,
    STEPS,
    CONTEXT,
    FAR,
    GUESTS,
    NUM_PROMPTS,
    RESERVED,
    NUM_READY,
    NUM_FRESH,
    LAYERS_LEFT,
    LAYERS_ALL,
    DECODES_NEXT,
    NEXT_END,
    RECV_INTERVAL,
    UNTIL_RECV,
    UNSEEN,
    MAX_AHEAD,
    AHEAD,
    ENDED,
) = range(29)
"""``lanes``: where it belongs; its limits; the lane that shares its compute units (-1); bytes that one request may
fill; the root of its queue; decode steps so far; tokens that decoding requests hold, those of them that are on other
machines, and those of others that are here; seats kept for requests on their way; groups of layers that the prompts
under way have still to pass, and all; whether decodes alone are next, where they take turns with prompts; the count of
decode steps at which the next answer ends, at the earliest; decode steps from one look for new requests to the next,
those left until then, and the root of the requests not yet seen; decode steps that may be planned ahead (0: none),
those that are, and how many of them have ended."""

RATES = (
    "decoded_s",
    "load_requests",
    "load_tokens",
    "link_s",
    "device_ways",
    "host_step_s",
    "host_per_sequence_s",
    "host_overlap_frac",
    "link_bytes_per_s",
    "link_latency_s",
    "host_bytes_per_s",
    "host_latency_s",
    "layers_frac",
    "prompt_padding",
    "answer_padding",
    "noted_s",
    "pool_noted_s",
    "host_launch_s",
    "graph_seqs",
    "host_pieces_s",
    "graph_tokens",
    "sampling_s",
    "busy_s",
    "spent_j",
    "awake_since_s",
    "wake_s",
    "filled_tokens",
    "layers_back",
)
(
    DECODED_S,
    LOAD_REQUESTS,
    LOAD_TOKENS,
    LINK_S,
    DEVICE_WAYS,
    HOST_STEP_S,
    HOST_PER_SEQUENCE_S,
    HOST_OVERLAP_FRAC,
    LINK_BYTES_PER_S,
    LINK_LATENCY_S,
    HOST_BYTES_PER_S,
    HOST_LATENCY_S,
    LAYERS_FRAC,
    PROMPT_PADDING,
    ANSWER_PADDING,
    NOTED_S,
    POOL_NOTED_S,
    HOST_LAUNCH_S,
    GRAPH_SEQS,
    HOST_PIECES_S,
    GRAPH_TOKENS,
    SAMPLING_S,
    BUSY_S,
    SPENT_J,
    AWAKE_S,
    WAKE_S,
    FILLED_TOKENS,
    LAYERS_BACK,
) = range(28)
"""``rates``, by lane: end of its last decode step; unfinished requests, and their tokens to come; when its link is
free; devices that work on one pass at a time; the host's part of a step; the ways of its cache to other machines and
to the host's memory; of the step: the share of all layers that its prompts pass, and tokens that are only padding; when
the timeline was brought up to date with the lane and (in the row of a pool's number) with the pool; the host's launches
of a step that is no CUDA graph, and the most decodes that one holds; the launches of a step in pieces, and the most
tokens of one; sampling, by sequence; and at the first lane of a unit the time and the joules above idle of its steps so
far; on a machine of several models, since when its model is awake, and how long it takes to wake."""

SEATS = ("decoding", "block_due", "end_due", "prompts", "grants", "ready", "fresh")
SEAT_DECODING, SEAT_BLOCK_DUE, SEAT_END_DUE, SEAT_PROMPTS, SEAT_GRANTS, SEAT_READY, SEAT_FRESH = range(7)
"""``seats``, by lane and seat: the decoding requests, with the counts of decode steps at which they need a block and
at which they end; the prompts under way in order of admission, with the tokens granted in this step; requests that
have come over a link; and those that joined since the last decode step."""

N_PROMPTS, N_NEW, N_PAIRS, N_DECODES, N_CONTEXT, N_EXTRA, N_DELAY_S, N_LOAD, N_FILL = range(9)
"""``step``, by lane: what was scheduled."""

AHEAD_END_S, AHEAD_S, AHEAD_MATRIX_S, AHEAD_MEMORY_S, AHEAD_HOST_BOUND_S = range(5)
"""``ahead``, by lane and step (the first is in flight): its end, its length, its work at the roofs of the matrix units
and of the memory, and its time if the host bounds it."""

BEGAN, SPENT, MATRIX_WORK_S, MEMORY_WORK_S = range(4)
"""``units``: start of the step in flight (nan: none), joules of it above idle, and the work of all its lanes."""
STAGES, SPLIT, SHARING, AWAKE = range(4)
"""``machines``: pipeline stages; which split of its compute units is in force; whether and how several models share it;
the deployment whose weights are on its devices where only one's are."""
BY_STEP, BY_SLEEP = 1, 2
"""``SHARING``: models take steps in turn; or one is awake at a time."""
KEPT, COMPRESS_S, SPAN_W, CONCAVE_POWER, ADAPTER_BYTES, ADAPTER_S, ADAPTER_WORK_S, FETCH_S, GAP_S = range(9)
"""``kept``, by deployment: share of a token's bytes that attention reads; time to compress a prompt token; a device's
power from idle to its limit, and the exponent of the law that says how much of it a step draws; bytes of an adapter on
one device, and the time that the weights of each adapter but one add to a step; that of weights from elsewhere; gaps
between the kernels of a step."""
SLOT_ADAPTER, SLOT_REQUESTS, SLOT_TURN = range(3)
"""``slots``, by cache and place: the adapter that is there (-1), requests in the batch that use it, and the turn of its
last use."""
EVENTS, ADMITTED, SERVED, UPCOMING, ARRIVED, EMITTED = range(6)
"""``counts``: root of the queue of events; then how many."""
T_STEPS, T_PROMPTED, T_ANSWERED, T_PREEMPTED, T_QUERIED, T_HIT = range(6)
"""``tally``, by lane: steps (of its unit, at the first lane), tokens of computed prompts and of answers, preemptions,
prompt tokens that were looked up in the prefix cache, and those found."""
E_NUMBER, E_TOKENS, E_END = range(3)
"""``emitted``: whose tokens, how many, and the status of a request that ended (0: it goes on)."""
GRANT, ORDER, ROUTE, OVERLAP, TRANSFER, SWAP, ACCEPT = range(7)
"""``knobs``: rows, of the rules that are called by address; and the chance of each level of guesses to hold."""

TOTALS = (
    "steps",
    "energy_j",
    "busy_s",
    "moved_bytes",
    "moved_s",
    "swapped_bytes",
    "swapped_s",
    "loaded_bytes",
    "drafted_tokens",
    "accepted_tokens",
    "finetune_tokens",
    "prompt_tokens",
    "padded_tokens",
    "host_bound_s",
    "log_rows",
    "width_s",
    "window_start_s",
    "window_end_s",
    "gap_sum_s",
    "gap_squares_s2",
    "adapter_loads",
    "adapter_load_s",
    "guessed_swaps",
    "right_guesses",
    "wakes",
    "hidden_s",
)
(
    TOTAL_STEPS,
    ENERGY,
    BUSY,
    MOVED,
    MOVED_S,
    SWAPPED_BYTES,
    SWAPPED_S,
    LOADED,
    DRAFTED,
    ACCEPTED,
    FINETUNED,
    PROMPTED,
    PADDED,
    HOST_BOUND,
    LOGGED,
    WIDTH,
    WINDOW_START,
    WINDOW_END,
    GAP_SUM,
    GAP_SQUARES,
    ADAPTER_LOADS,
    ADAPTER_LOAD_S,
    GUESSED,
    RIGHT,
    WAKES,
    HIDDEN,
) = range(26)
(
    B_STEPS,
    B_BUSY,
    B_PROMPT,
    B_DECODE,
    B_RUNNING,
    B_WAITING,
    B_KV,
    B_ENERGY,
    B_ARRIVALS,
    B_FINISHES,
    B_PREEMPTED,
    B_PADDED,
) = range(12)
"""``timeline``: columns, as in ``result.TIMELINE``."""
GAP_LEAST_S, GAP_BINS_PER_DECADE = 1e-6, 1000


class Rules(NamedTuple):
    """Rules by which a lane fills its steps."""

    mixes: bool  # prompts and decodes share steps; otherwise prompts go first, alone
    alternates: bool  # and after each step of prompts comes one of decodes
    waits_for_empty: bool  # a batch is formed when the last one has ended
    holds_batch: bool  # answers that are done stay in the batch until all are
    returns_together: bool  # and leave with it
    pads_prompts: bool  # all prompts of a batch are as long as the longest
    reserves_output: bool
    guess_knob: int  # of the swap's rule: where a hit (1) or a miss (0) of the next transfer is written; -1: nowhere
    swaps: bool  # preempted sequences go to the host instead of being computed again
    evicts_by_key: bool  # the last in the queue's order is preempted, not the last admitted
    layer_group_tokens: int  # layered prefill: whole prompts, a run of layers a step; 0 = all layers at once
    draft_levels: int  # tokens that a step may add beyond the sure one; 0 = nothing is guessed
    checked_tokens: int  # guesses that a step checks
    draft_s: float  # of guessing, and for each sequence
    draft_sequence_s: float
    fill_tokens: int  # fine-tuning fills steps up to so many tokens
    fill_until_s: float  # while a step stays below
    fill_sequence: int  # tokens of a sequence whose layers go back one after the other; 0 = both ways fill steps
    fill_layers: int  # of it that go back beside a step
    fill_layer_s: float  # that each of them takes
    target_s: float  # split machines: step time to hold by moving compute units
    load_hides: bool  # blocks from the host arrive while the step computes
    transfer_layers: int  # parts of a hand-over, each sent once its layer is computed; 1 = all after the prompt
    prefill_queue: int  # prompts that wait at machines for them, at which those for answers take more; 0 = any number
    has_overlap: bool
    overlaps_sends: bool  # pipeline stages send while they compute the next batch
    prompts_stream_first: bool  # the machines that computed a prompt send its first token to the client themselves
    concurrency: int  # closed loop: requests in flight; 0 = open
    needs_prefix: bool  # the router asks how much of a prompt each lane holds
    needs_adapter: bool  # the router asks where the adapter is
    turn_s: float  # one model stays awake so long while others wait
    max_queue: int  # a request that finds so many waiting at its lane is refused; 0 = never
    reports: bool  # requests come while the clock moves, and every token is told; otherwise all are known before


class SimulationState(NamedTuple):
    """Complete state of a simulation."""

    rules: Rules
    knobs: Floats2
    req: Ints2
    when: Floats2
    number: Ints  # of each request, in order of arrival: equals in a queue go by it
    order: Ints  # requests that follow nobody, by time
    prefix_start: Ints  # by request: its part of the ids
    prefix_end: Ints
    prefix_ids: Ints
    draws: Floats2  # (request, 2): uniform numbers for the router
    key: Floats  # of the lanes' queues
    links: Ints2
    due_s: Floats  # of the queue of events: followers, next ones of a closed loop, caches on their way
    event_links: Ints2
    home: Ints  # by session: the lane that served it last
    tag: Floats  # virtual time of fair queues; then by client: when its last request ends in it
    counts: Ints
    lanes: Ints2
    rates: Floats2
    seats: Ints3
    slots: Ints3  # (caches, columns, places): adapters that are on the devices; no places: no adapters
    step: Floats2
    entry: Ints  # lanes that new requests may go to
    exit: Ints  # lanes that take over after the prompt
    unit_lane: Ints  # first lane of each unit, and the end
    unit_machine: Ints
    units: Floats2
    moments: Floats  # the clock: by unit
    winners: Ints
    machines: Ints2
    send_share: Floats  # by machine: of its network time, from one pipeline stage to the next
    stage_share: Floats  # by machine: of a pass, on the slowest pipeline stage
    stage_s: Floats2  # (machine, stage): free from
    slowness: Floats  # by machine: how much longer its steps take
    clocks: Floats  # by machine: of its devices, as a part of the full one
    spans: Floats  # by machine: power above idle at that clock, as a part of the full one
    memory: memory.Memory
    held: Ints2  # (deployment, blocks): bytes of a sequence of so many blocks
    lent: Ints3  # (request, lane, 2): bytes and tokens of it that lenders beside the first hold; empty: none lends
    block_tokens: int
    blocks_each: int  # of a shared prefix block; 0 = no prefix cache
    surfaces: surface.Surface  # of all deployments (and, of split machines, by split and contention)
    num_variants: int  # of one deployment
    retained: Floats2
    num_layers: float
    lending_s: float  # of one step with keys and values on another machine; negative: nothing is lent
    cost: Floats2  # scratch of the price
    ahead: Floats3  # (lanes, columns, steps): steps that are planned
    ahead_cost: Floats2  # (steps, channels): scratch of their price
    routing: Floats2  # scratch of the router: requests, tokens, blocks found
    routed: Ints  # scratch of the router: lanes
    gaps: Floats  # histogram
    timeline: Floats2  # (bins, columns)
    log: Floats2  # (rows, columns): steps inside the window
    totals: Floats
    tally: Ints2
    regions: regions.Regions
    emitted: Ints2  # (rows, columns), and when
    emitted_s: Floats
    swapped: Ints  # requests in the host's memory in the order in which they left, where their return is guessed
    guesses: Ints  # how many there are; and how often the newest, and the oldest, of them came back first
