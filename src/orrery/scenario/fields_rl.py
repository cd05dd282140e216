"""Settings of RL post-training (``train --rl``); those that it shares with training and serving stand with them."""

from orrery.scenario.setting import TRAIN, Setting, count, grouped, number, switch, word

RL_SETTINGS: tuple[Setting, ...] = grouped(
    "RL post-training",
    switch("rl", "One step of RL post-training: rollouts, log-probabilities, updates, weight sync.", commands=TRAIN),
    word(
        "rl_placement",
        "With --rl: where each call of each model runs: searched (a mesh and a layout each, weights move between), "
        "symmetric (one layout for all), zero3, disjoint (devices of its own for each model), asynchronous (engines "
        "write ahead); all are compared.",
        "searched",
        "NAME",
        commands=TRAIN,
    ),
    word(
        "algorithm",
        "With --rl: grpo (default), ppo (trains a critic too) or dapo (no reference policy).",
        "grpo",
        "grpo|ppo|dapo",
        commands=TRAIN,
    ),
    count("prompts_per_step", "With --rl: prompts that one step trains on.", 64, commands=TRAIN),
    count(
        "generations_per_prompt", "With --rl: responses to each prompt (group size).", 16, most=65536, commands=TRAIN
    ),
    count(
        "max_output_tokens",
        "With --rl: the longest response; where it cuts, lengths pile up (default: what --seq-len leaves).",
        8192,
        most=100_000_000,
        commands=TRAIN,
    ),
    count(
        "generation_devices",
        "With --rl: devices that only generate; the others train (default: half where pools are separate).",
        16,
        commands=TRAIN,
    ),
    count("generation_tp", "With --rl: tensor-parallel degree of an engine.", 2, most=4096, commands=TRAIN),
    count("generation_pp", "With --rl: pipeline stages of an engine.", 1, most=4096, commands=TRAIN),
    count("generation_ep", "With --rl: expert-parallel degree inside an engine.", 4, most=65536, commands=TRAIN),
    word(
        "generation_weights",
        "With --rl: format that engines hold weights in (default: bf16).",
        "fp8",
        "FORMAT",
        commands=TRAIN,
    ),
    switch(
        "colocated",
        "With --rl: engines and trainer take turns on the same devices (default: unless "
        "--max-staleness or --generation-devices).",
        commands=TRAIN,
    ),
    count(
        "max_staleness",
        "With --rl: updates that a rollout's policy may be behind the trainer's; 0 is on policy, in turn (default).",
        1,
        least=0,
        most=1000,
        commands=TRAIN,
    ),
    switch(
        "updates_in_flight",
        "With --rl: engines take new weights without finishing what they have begun (default with --max-staleness).",
        commands=TRAIN,
    ),
    switch(
        "partial_rollout",
        "With --rl: stop once enough prompts are answered; the others go on in the next step.",
        commands=TRAIN,
    ),
    switch(
        "tail_batching",
        "With --rl: short rounds take the first responses; slow prompts get rounds of their own.",
        commands=TRAIN,
    ),
    number(
        "oversampling",
        "With --rl: prompts begun over those needed, for the two above (default 1.5; 1.25).",
        1.5,
        least=1.0,
        most=100.0,
        excludes_least=False,
        commands=TRAIN,
    ),
    number(
        "kept_groups",
        "With --rl: share of groups that dynamic sampling keeps (default 1).",
        0.6,
        most=1.0,
        metavar="FRAC",
        commands=TRAIN,
    ),
    switch(
        "reference",
        "With --rl: a frozen reference policy reads every sequence, for a KL penalty (default: as the "
        "algorithm and the framework do).",
        commands=TRAIN,
    ),
    switch(
        "old_logprobs",
        "With --rl: the trainer works out the policy's own log-probabilities before the updates (default: yes).",
        commands=TRAIN,
    ),
    word(
        "critic_model",
        "With --rl --algorithm ppo: the critic (default: as large as the policy).",
        "llama-3.2-1b",
        "NAME|PATH",
        commands=TRAIN,
    ),
    word(
        "reward_model",
        "With --rl: a model that scores every sequence (default: a function).",
        "llama-3.1-8b",
        "NAME|PATH",
        commands=TRAIN,
    ),
    word(
        "reference_model",
        "With --rl-placement: the frozen reference policy (default: as large as the policy).",
        "llama-3.1-8b",
        "NAME|PATH",
        commands=TRAIN,
    ),
    number(
        "reward_s",
        "With --rl: seconds of one worker to score one response (default 0).",
        0.5,
        most=1e6,
        excludes_least=False,
        metavar="S",
        commands=TRAIN,
    ),
    count("reward_workers", "With --rl: workers that score at once.", 64, commands=TRAIN),
    count("ppo_epochs", "With --rl: passes over the same rollouts (default 1).", 1, most=1000, commands=TRAIN),
    switch(
        "sequence_packing",
        "With --rl: sequences share micro-batches without padding (default: as the framework does).",
        commands=TRAIN,
    ),
    switch(
        "offload_training",
        "With --rl, colocated: weights and optimizer leave the device while engines generate (default: yes).",
        commands=TRAIN,
    ),
)
