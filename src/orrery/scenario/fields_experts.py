"""Settings of routed experts: who chooses them, where they lie, and who computes them."""

from orrery.scenario.setting import EVERY, ONE, SIMULATE, STEPS, Setting, grouped, number, word

EXPERT_SETTINGS: tuple[Setting, ...] = grouped(
    "Routed experts",
    word(
        "expert_loads",
        "How tokens choose experts: balanced, zipf:S, zipf:S+affinity:F (a share F follows a favourite), or a file: "
        "each one's share, or a routing trace.",
        "zipf:0.5",
        "LAW|FILE",
        commands=EVERY,
    ),
    word(
        "expert_placement",
        "Where experts lie: in-order, redundancy (copies of popular ones); serving also copied-context, exflow, "
        "moetuner; training also rearranged.",
        "redundancy",
        "NAME",
        commands=EVERY,
    ),
    "Many expert models behind a router",
    word(
        "composition",
        "Expert models of --model's size, each asked for by a share of requests: how many (alike), with a law, or a "
        "file of shares. One replica serves them in turn and holds as many as fit.",
        "150:zipf:0.8",
        "N[:LAW]|FILE",
        commands=SIMULATE,
    ),
    number(
        "switch_bytes_per_s",
        "Rate at which an expert model comes up to the replica's devices (default: their host links together).",
        1e12,
        most=1e16,
        metavar="BYTES_PER_S",
        commands=SIMULATE,
    ),
    "Experts in the host's memory",
    word(
        "expert_offload",
        "Experts in the host's memory: host (they cross the link when needed), host-compute (the host computes too), "
        "host-attention (all weights cross it in every pass; the host keeps the KV cache and attends).",
        "host-compute",
        "host|host-compute|host-attention",
        commands=ONE | STEPS,
    ),
    number(
        "host_kv_bytes",
        "Bytes of the host's memory for the KV cache, with --expert-offload host-attention.",
        7e10,
        most=1e15,
        metavar="BYTES",
        commands=ONE | SIMULATE,
    ),
    number(
        "expert_cached",
        "Share of each layer's experts, or of the layers, that the device keeps (default 0.5).",
        0.25,
        most=1.0,
        excludes_least=False,
        metavar="FRAC",
        commands=ONE | STEPS,
    ),
    word(
        "expert_cache",
        "Which of them it keeps: lru (default), score (those used lately and often), static (the popular ones), layers "
        "(all of whole layers, none of the others).",
        "score",
        "lru|score|static|layers",
        commands=ONE | STEPS,
    ),
    word(
        "expert_schedule",
        "What the host computes with host-compute: greedy (whatever is done soonest there; default), fixed (all that "
        "is missing).",
        "fixed",
        "greedy|fixed",
        commands=ONE | STEPS,
    ),
    number(
        "expert_prefetch",
        "How often a predictor names an expert that the next layer needs (default 0: nothing is fetched ahead).",
        0.7,
        most=1.0,
        excludes_least=False,
        metavar="FRAC",
        commands=ONE | STEPS,
    ),
    number(
        "expert_repeat",
        "Correlation of routers' scores from one token of a sequence to its next (default 0).",
        0.5,
        most=0.999,
        excludes_least=False,
        metavar="FRAC",
        commands=ONE | STEPS,
    ),
    number(
        "host_flops_per_s",
        "Rate at which the host multiplies experts' weights as stored.",
        1e12,
        most=1e17,
        metavar="FLOPS",
        commands=ONE | STEPS,
    ),
)
"""In the order of the help page."""
