"""Settings of a cache for agents; nothing heavy is imported, so that help stays quick."""

from orrery.scenario.setting import CACHE, Setting, count, number, word

CACHE_SETTINGS: tuple[Setting, ...] = (
    word(
        "sessions",
        "Recorded sessions: a CSV file with session, t_s, input_tokens, output_tokens, shared_prefix_tokens; or "
        "example-agents, made-up ones.",
        "example-agents",
        "NAME|FILE",
        commands=CACHE,
    ),
    number("sessions_per_hour", "Sessions that begin each hour (default 60).", 60, most=1e7, commands=CACHE),
    number(
        "cache_hit",
        "Share of turns that shall find all that they share (default 0.95).",
        0.95,
        most=1.0,
        metavar="FRAC",
        commands=CACHE,
    ),
    number(
        "nvme_cache_bytes",
        "Drive space of a replica for blocks that leave the host.",
        4e12,
        most=1e18,
        metavar="BYTES",
        commands=CACHE,
    ),
    number(
        "remote_cache_bytes", "A store over the network behind that.", 1e14, most=1e19, metavar="BYTES", commands=CACHE
    ),
    number(
        "remote_bytes_per_s",
        "Rate of that store into a replica (default: one network link of the device).",
        12.5e9,
        most=1e15,
        metavar="BYTES_PER_S",
        commands=CACHE,
    ),
    count(
        "block_tokens",
        "Tokens of a block, where the file counts blocks (default 64).",
        64,
        most=1_000_000,
        commands=CACHE,
    ),
)
"""In the order of the help page."""
