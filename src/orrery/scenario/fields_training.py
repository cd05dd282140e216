"""Settings of training jobs; those that they share with serving stand in ``fields``."""

from orrery.scenario.setting import ONE, SIMULATE, STEPS, TRAIN, Setting, count, grouped, number, switch, word

TRAINING_SETTINGS: tuple[Setting, ...] = grouped(
    "Training job",
    count("global_batch", "Sequences of one optimizer step, over all devices.", 1024, most=10_000_000, commands=TRAIN),
    count("micro_batch", "Sequences that a device takes at once.", 1, most=1_000_000, commands=TRAIN),
    count("seq_len", "Tokens of a sequence.", 4096, most=100_000_000, commands=TRAIN),
    word("precision", "Precision recipe: bf16, fp16, fp8, fp8_block, mxfp8, nvfp4, …", "bf16", "NAME", commands=TRAIN),
    word(
        "framework",
        "Training framework: megatron-lm, nemo, torchtitan, deepspeed, fsdp, …",
        "megatron-lm",
        "NAME",
        commands=TRAIN,
    ),
    switch(
        "fused_attention",
        "Whether attention is one kernel that never writes its scores to memory (default: as the framework does it).",
        commands=TRAIN,
    ),
    switch(
        "native_attention",
        "Whether that kernel uses the generation's own matrix units, as FlashAttention-3 and -4 and cuDNN do, "
        "or Ampere's, as FlashAttention-2 does (default: as the framework does it).",
        commands=TRAIN,
    ),
    word(
        "cuda_graphs",
        "Parts of a step that are recorded once and replayed: attn, mlp, mamba, moe, moe_router, moe_preprocess "
        "(comma-separated), full_iteration, or none (default: as the framework's recipes do).",
        "attn,moe_router,moe_preprocess",
        "SCOPES",
        commands=TRAIN,
    ),
    count(
        "loss_tokens",
        "Tokens of a micro-batch whose logits exist at once, where the loss is computed in chunks (default: all).",
        4096,
        most=100_000_000,
        commands=TRAIN,
    ),
    "Layout",
    word(
        "layout",
        "A whole layout by the name that a plan prints; what it leaves out is off.",
        "tp8 sp pp8 dp16 mb1 zero1 1f1b",
        "NAME",
        commands=TRAIN,
    ),
    word(
        "against",
        "With --plan: a layout of yours by its name; says its rank and what the best changes.",
        "tp8 sp pp8 dp16 mb1 zero1 1f1b",
        "NAME",
        commands=TRAIN,
    ),
    count("vp", "Model chunks of each pipeline stage (interleaving).", 2, most=1024, commands=TRAIN),
    count(
        "first_stage_layers",
        "Layers of the first pipeline stage, where its share is not even.",
        7,
        most=10_000,
        commands=TRAIN,
    ),
    count(
        "last_stage_layers",
        "Layers of the last pipeline stage; those between share the rest evenly.",
        7,
        most=10_000,
        commands=TRAIN,
    ),
    count(
        "etp",
        "Ways in which one expert is cut (default: as the framework does).",
        1,
        most=4096,
        commands=ONE | SIMULATE | TRAIN,
    ),
    "Sharding and recomputation",
    word(
        "sharding",
        "What data-parallel ranks share out: none, zero1, zero2, zero3 (fsdp).",
        "zero1",
        "NAME",
        commands=TRAIN,
    ),
    count(
        "sharding_group",
        "Ranks that share one copy of what is sharded (HSDP); default: all.",
        8,
        most=65536,
        commands=TRAIN,
    ),
    count(
        "secondary_group",
        "Ranks that keep a second, nearer copy of sharded weights (ZeRO++).",
        8,
        most=65536,
        commands=TRAIN,
    ),
    word(
        "recompute",
        "What the backward pass computes again: none, selective, full, or modules of each layer: "
        "core_attn, moe_act, layernorm, mla_up_proj, mlp, moe, shared_experts (comma-separated).",
        "selective",
        "NAME",
        commands=TRAIN,
    ),
    count(
        "recompute_layers",
        "Recompute only so many layers of each stage (with full; 0: all of them).",
        4,
        least=0,
        most=10_000,
        commands=TRAIN,
    ),
    "Schedule and overlap",
    word(
        "schedule",
        "Pipeline schedule: 1f1b, interleaved, zero-bubble-h1, dualpipe, …; any for --plan.",
        "1f1b",
        "NAME",
        commands=TRAIN,
    ),
    word("context_kind", "How attention sees the whole sequence: ring or all-to-all.", "ring", "NAME", commands=TRAIN),
    switch(
        "sequence_parallel", "Cut norms and dropouts too where tp > 1 (default: as the framework does).", commands=TRAIN
    ),
    word(
        "tensor_overlap",
        "What tensor-parallel collectives run beside: serial, weight-gradients, pieces, domino, …",
        "domino",
        "NAME",
        commands=TRAIN,
    ),
    word(
        "expert_overlap",
        "What the exchange of tokens runs beside, or is spared by: expert-serial, expert-pipeline, "
        "sparse-materialisation, shadowing.",
        "expert-pipeline",
        "NAME",
        commands=TRAIN,
    ),
    switch(
        "overlap_micro_batches",
        "Send one micro-batch's tokens to their experts while another is computed, as Megatron's "
        "--overlap-moe-expert-parallel-comm does (default: as the framework's recipes do).",
        commands=TRAIN,
    ),
    word(
        "gradient_overlap",
        "What data-parallel sums of gradients run beside: gradient-serial (after the backward pass), gradient-buckets, "
        "gradient-slots (default: as the framework does).",
        "gradient-slots",
        "NAME",
        commands=TRAIN,
    ),
    count(
        "expert_replicas",
        "Copies of a layer's experts with redundancy (default: one a rank).",
        32,
        most=65536,
        commands=TRAIN,
    ),
    count(
        "placement_interval_steps",
        "Steps from one placement of experts to the next.",
        100,
        most=10_000_000,
        commands=TRAIN,
    ),
    number(
        "expert_capacity_factor",
        "Most tokens that a rank sends to one expert, over those of the mean expert; more are dropped (default: none "
        "are).",
        1.25,
        most=1000.0,
        metavar="X",
        commands=TRAIN,
    ),
    switch(
        "pad_experts",
        "With expert_capacity_factor: every expert computes as many rows as it may take, empty ones too.",
        commands=TRAIN,
    ),
    word(
        "dispatcher",
        "How tokens reach their experts: all-gather, all-to-all, einsum (products with masks put them into a fixed "
        "number of places), einsum-flat (masks of all tokens at once, in every tensor-parallel rank), deepep, hybridep "
        "(default: the framework's).",
        "all-to-all",
        "NAME",
        commands=TRAIN,
    ),
    "Training job",
    word(
        "task", "pretrain, full_finetune, lora, qlora, adapter, forward_backward.", "pretrain", "NAME", commands=TRAIN
    ),
    count("adapter_rank", "Rank of low-rank adapters.", 16, most=65536, commands=TRAIN),
    word(
        "target_modules",
        "Linear layers that low-rank adapters stand beside: qkv (into attention), attention (and out of it), or "
        "all-linear (default: as the framework's recipes do).",
        "all-linear",
        "NAME",
        commands=TRAIN,
    ),
    switch(
        "prune_activations",
        "With task lora or qlora: keep only the activations that the adapters' gradients read, and make norms and "
        "activations again.",
        commands=TRAIN,
    ),
    "Nodes and islands",
    count(
        "devices_per_node",
        "Devices of a node, where it is not the device's usual number.",
        8,
        most=4096,
        commands=TRAIN,
    ),
    count(
        "island_devices",
        "Devices of one island: a cluster or site with a slower link to the others.",
        512,
        commands=TRAIN,
    ),
    number(
        "island_link_bytes_per_s",
        "That link, each way and device.",
        1e9,
        most=1e13,
        metavar="BYTES_PER_S",
        commands=TRAIN,
    ),
    "Offloading",
    word(
        "offload",
        "How states leave the device: zero-offload, zero-infinity, …; any for --plan.",
        "zero-offload",
        "NAME",
        commands=TRAIN,
    ),
    switch(
        "activation_offloading",
        "Keep what layers save for their backward pass in the host's memory (TRL and Axolotl activation_offloading, "
        "torchtune enable_activation_offloading).",
        commands=TRAIN,
    ),
    number(
        "host_memory_bytes",
        "Host memory of one node, for what is offloaded, and for weights that sleep.",
        1e12,
        most=1e18,
        excludes_least=False,
        metavar="BYTES",
        commands=TRAIN | {"fleet"},
    ),
    number(
        "host_memory_bytes_per_s",
        "Peak rate of the host's memory: its update, and experts that it computes, run at it.",
        4e11,
        most=1e15,
        metavar="BYTES_PER_S",
        commands=ONE | STEPS | TRAIN,
    ),
    number(
        "nvme_bytes",
        "Drives of one node, for what is offloaded.",
        3e13,
        most=1e18,
        excludes_least=False,
        metavar="BYTES",
        commands=TRAIN,
    ),
    count(
        "devices_per_host_link",
        "Devices that share one link to the host, such as those behind a PCIe switch (default 1).",
        2,
        most=1024,
        commands=TRAIN,
    ),
    number(
        "host_updates_per_s",
        "Parameters that the optimizer on the host of one node updates in a second, measured (default: what the "
        "memory's rate allows).",
        2e9,
        most=1e15,
        metavar="N_PER_S",
        commands=TRAIN,
    ),
    number("nvme_read_bytes_per_s", "What they read together.", 5e10, most=1e15, metavar="BYTES_PER_S", commands=TRAIN),
    number(
        "nvme_write_bytes_per_s", "What they write together.", 3e10, most=1e15, metavar="BYTES_PER_S", commands=TRAIN
    ),
    "Length of the run",
    number(
        "train_tokens",
        "Tokens to train on: days, energy and money of the whole run.",
        15e12,
        most=1e18,
        metavar="N",
        commands=TRAIN,
    ),
    "Failures and checkpoints",
    number(
        "device_mtbf_s",
        "Mean time between failures of one device; with it, goodput.",
        4e8,
        most=1e15,
        metavar="S",
        commands=TRAIN,
    ),
    number("node_mtbf_s", "… and of one node.", 2e8, most=1e15, metavar="S", commands=TRAIN),
    number(
        "detection_s", "From a failure to its notice.", 600, most=1e8, excludes_least=False, metavar="S", commands=TRAIN
    ),
    number(
        "restart_s",
        "From its notice to the next step.",
        600,
        most=1e8,
        excludes_least=False,
        metavar="S",
        commands=TRAIN,
    ),
    word(
        "checkpoint",
        "How checkpoints are written: blocking, snapshot, lazy, in-memory; or reshape (--reshape-to).",
        "lazy",
        "NAME",
        commands=TRAIN,
    ),
    number(
        "checkpoint_interval_s",
        "Time between them; default: the best one.",
        1800,
        most=1e9,
        metavar="S",
        commands=TRAIN,
    ),
    number(
        "storage_bytes_per_s", "What one node writes to storage.", 2e9, most=1e14, metavar="BYTES_PER_S", commands=TRAIN
    ),
    "Length of the run",
    count("eval_every_steps", "Evaluate after every N steps of the run.", 1000, most=1_000_000_000, commands=TRAIN),
    count("eval_batches", "Global batches of one evaluation, forward only.", 10, commands=TRAIN),
    number(
        "data_tokens_per_s",
        "What all data loaders deliver together; steps wait for them.",
        1e6,
        most=1e15,
        metavar="TOKENS_PER_S",
        commands=TRAIN,
    ),
    number(
        "startup_s",
        "Compilation and first steps: at the start, and again after every failure.",
        120,
        most=1e8,
        excludes_least=False,
        metavar="S",
        commands=TRAIN,
    ),
)
