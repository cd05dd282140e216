"""Settings of draft tokens and of what is kept of the KV cache."""

from orrery.scenario.setting import ONE, SERVING, SIMULATE, STEPS, Setting, count, grouped, number, switch, word

DECODING_SETTINGS: tuple[Setting, ...] = grouped(
    "Speculative decoding",
    word(
        "draft",
        "How draft tokens are made: a head on the model's own state (mtp, eagle, eagle3), a tree by --draft-model or "
        "the prompt (tree), or trained prompt tokens (prompt-tokens); trees are chosen for your device and batch.",
        "mtp",
        "mtp|eagle|eagle3|tree|prompt-tokens",
    ),
    word(
        "draft_model",
        "A small model that makes the draft tokens (default: the prompt is searched).",
        "llama-3.2-1b",
        "NAME|PATH",
        commands=SERVING,
    ),
    count("draft_tokens", "Draft tokens that one step verifies.", 4, most=1000),
    word(
        "draft_tree",
        "Draft tokens at each level of a tree, in place of draft_tokens.",
        "4,2,1",
        "N,N,…",
        commands=SERVING,
    ),
    word(
        "draft_batching",
        "How an engine with one padded tensor takes sequences that accepted different numbers of draft tokens: "
        "realign, pool, padded (default: paged caches, which need none of it).",
        "pool",
        "realign|pool|padded",
        commands=SIMULATE,
    ),
    count(
        "draft_pool",
        "Sequences that a pool holds for groups of one length (default: six batches).",
        48,
        commands=SIMULATE,
    ),
    number(
        "acceptance",
        "Acceptance rate: the share of draft tokens that are accepted; 0.8,0.6 is one for each position.",
        0.7,
        most=1.0,
        excludes_least=False,
    ),
    word(
        "acceptance_by_position",
        "The same for draft token 1, 2, …, where those before it are accepted; by rank 0.6/0.2,0.5/0.1, or a file with "
        "a line a position and a column a rank.",
        "0.85,0.7",
        "FRAC,FRAC,…|FILE",
    ),
    "KV cache",
    word(
        "context_lengths",
        "What these context lengths cost, a row each: sequences at once, prompt, decode step, change between users; "
        "for every format in kv, and for what is kept of the cache.",
        "4096,50000",
        "N,N,…",
        commands=frozenset({"estimate"}),
    ),
    number("kv_kept_tokens", "Share of a prompt's tokens that a compressed cache keeps.", 0.5, most=1.0),
    number("kv_kept_bytes", "Share of each token's bytes that a compressed cache keeps.", 0.5, most=1.0),
    word(
        "kv_kept_layers",
        "The same by layer, or by layer and head: a file with a line a layer, and a share for each head or one.",
        "rates.csv",
        "FILE",
    ),
    word(
        "kv_selection",
        "How positions of a prompt are chosen that stay cached: snapkv (scores of its last tokens), recent, random.",
        "snapkv",
        "snapkv|recent|random",
    ),
    count("kv_budget_tokens", "Positions of a prompt that stay cached in each head.", 1024, most=100_000_000),
    word(
        "attention_map",
        "A file of attention (heads, queries, keys) to choose on (.npz, .npy; default: drawn maps with heavy hitters).",
        "maps.npz",
        "FILE",
    ),
    switch(
        "lend_cache", "Replicas keep blocks for each other, and attend to them where they are.", commands=ONE | STEPS
    ),
)
"""In the order of the help page."""
