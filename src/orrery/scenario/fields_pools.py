"""Settings of separate pools for prefill and decode; nothing heavy is imported, so that help stays quick."""

from orrery.scenario.setting import ONE, PLAN, STEPS, Setting, count, number, switch, word

POOL_SETTINGS: tuple[Setting, ...] = (
    word(
        "disaggregation_mode",
        "One pool alone: prefill (prompts, up to their first token) or decode (answers to requests that come with "
        "their cache).",
        "decode",
        "prefill|decode",
        commands=ONE,
    ),
    count(
        "prefill_replicas", "Separate replicas for prompts; the others only answer.", 1, most=100_000, commands=STEPS
    ),
    count("prefill_tp", "Tensor-parallel degree of those.", 2, most=4096, commands=STEPS),
    count("prefill_pp", "Pipeline stages of those.", 1, most=4096, commands=STEPS),
    count("prefill_dp", "Attention ranks of those, which share their experts.", 2, most=4096, commands=STEPS),
    count("prefill_ep", "Ranks that their experts are spread over.", 8, most=4096, commands=STEPS),
    word("prefill_device", "Their device, where it is another one.", "h100-sxm", "NAME|PATH", commands=STEPS | PLAN),
    number(
        "prefill_clock_frac",
        "Part of their full clock at which they run, where it is another one.",
        0.8,
        most=1.0,
        least=0.1,
        excludes_least=False,
        metavar="FRAC",
        commands=STEPS,
    ),
    word(
        "decode_device",
        "--disaggregate: device of the decode pool, where it is another one.",
        "a100-sxm-80gb",
        "NAME|PATH",
        commands=PLAN,
    ),
    switch("same_node", "Both kinds stand in one node: caches go over its links."),
    switch(
        "layerwise_transfer",
        "Caches go over layer by layer, while their prompt is computed.",
        commands=STEPS | PLAN,
    ),
    count(
        "max_prefill_queue",
        "Prompts that wait at a prefill replica, at which decode replicas compute the next ones; where those are full, "
        "answers stay with their prompts.",
        2,
        most=1_000_000,
        commands=STEPS | PLAN,
    ),
    word(
        "split",
        "Part of each device's compute units for answers, beside prompts; several: the first to start with.",
        "0.4,0.6",
        "FRAC[,FRAC]",
        commands=STEPS,
    ),
)
"""In the order of the help page."""
