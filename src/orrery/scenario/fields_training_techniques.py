"""Settings of techniques that change a training job as a whole; the plain ones stand in ``fields_training``."""

from orrery.scenario.setting import TRAIN, Setting, count, grouped, number, switch, word

LOCAL_UPDATE_SETTINGS: tuple[Setting, ...] = grouped(
    "Local updates and sites",
    word(
        "local_updates",
        "When replicas exchange what they learnt: co2, diloco, local-sgd, gossip (default: gradients in every step).",
        "co2",
        "NAME",
        commands=TRAIN,
    ),
    count("local_steps", "Steps of each replica between two exchanges (tau of CO2, H of DiLoCo).", 12, commands=TRAIN),
    count("local_neighbours", "Replicas that each one averages with (gossip).", 2, most=1024, commands=TRAIN),
    count(
        "exchange_bits", "Bits of each parameter in that exchange (default: 32).", 8, least=1, most=32, commands=TRAIN
    ),
    number(
        "participation_frac",
        "Share of the replicas that take part in each exchange; the others train on.",
        0.5,
        most=1.0,
        metavar="FRAC",
        commands=TRAIN,
    ),
    count("sites", "Sites that hold equal parts of the devices, joined by a wide-area link.", 8, commands=TRAIN),
    number(
        "site_link_bytes_per_s",
        "That link, each way, of one whole site.",
        1.25e9,
        most=1e15,
        metavar="BYTES_PER_S",
        commands=TRAIN,
    ),
    word(
        "sites_train",
        "together: one model; experts: each site a model of its own on its part of the data.",
        "experts",
        "NAME",
        commands=TRAIN,
    ),
    number(
        "node_link_bytes_per_s",
        "Link between nodes, each way, of one whole node (default: the device's).",
        1e11,
        most=1e15,
        metavar="BYTES_PER_S",
        commands=TRAIN,
    ),
)

PARTITION_SETTINGS: tuple[Setting, ...] = grouped(
    "Partition of states",
    word(
        "partition",
        "Where weights, gradients and optimizer states are cut: zero3, zero-plus-plus, three-level, or levels.",
        "three-level",
        "NAME",
        commands=TRAIN,
    ),
    word(
        "partition_levels",
        "The level of each state, with partition = levels (or in place of the technique's): weights, second (a nearer "
        "copy), gradients, optimizer; levels are device, node, system and those of link_levels.",
        "weights=node,gradients=node,optimizer=system",
        "STATE=LEVEL,…",
        commands=TRAIN,
    ),
    word(
        "link_levels",
        "Levels of links inside a node, innermost first: a name, its devices, each one's bytes/s each way.",
        "die:2:2e11",
        "NAME:DEVICES:BYTES_PER_S,…",
        commands=TRAIN,
    ),
    count(
        "wire_weight_bits",
        "Bits of a weight on its way, where the partition narrows it.",
        8,
        least=2,
        most=16,
        commands=TRAIN,
    ),
    count("wire_gradient_bits", "… and of a gradient.", 4, least=2, most=16, commands=TRAIN),
)

FAILURE_SETTINGS: tuple[Setting, ...] = grouped(
    "Failures and checkpoints",
    word(
        "recovery",
        "After the loss of a pipeline stage: rollback (to a checkpoint), redundant (its neighbour computes it too), "
        "neighbour-average (made from its neighbours).",
        "redundant",
        "NAME",
        commands=TRAIN,
    ),
    number(
        "setback_steps",
        "Steps that one loss sets training back with neighbour-average; measured.",
        20,
        most=1e9,
        excludes_least=False,
        metavar="STEPS",
        commands=TRAIN,
    ),
    word(
        "detection",
        "How failures are noticed: timeout (of a collective), collective (the rhythm of collectives).",
        "collective",
        "NAME",
        commands=TRAIN,
    ),
    number(
        "diagnosis_s",
        "From a failure's notice until the faulty node is known, where people look for it.",
        1800,
        most=1e8,
        excludes_least=False,
        metavar="S",
        commands=TRAIN,
    ),
    number(
        "report_s",
        "Between two reports of each rank's collectives, with detection = collective.",
        10,
        most=1e6,
        metavar="S",
        commands=TRAIN,
    ),
    number(
        "failure_shape",
        "Weibull shape of the times between failures (default 1: independent of each other); below 1 they come in "
        "bursts. Runs are drawn, with percentiles of their time.",
        0.7,
        most=10.0,
        least=0.1,
        excludes_least=False,
        metavar="X",
        commands=TRAIN,
    ),
    number(
        "checkpoint_buffer_bytes",
        "Pinned host memory of one node through which saves pass (default: as much as they take).",
        6.4e10,
        most=1e15,
        metavar="BYTES",
        commands=TRAIN,
    ),
    number(
        "slow_mtbf_s",
        "Mean time until one device turns slow, so that all others wait for it in every step, and is replaced.",
        3e8,
        most=1e15,
        metavar="S",
        commands=TRAIN,
    ),
    number(
        "slow_ratio",
        "How many times as long a step takes with such a device.",
        1.3,
        least=1.0,
        most=1000,
        metavar="X",
        commands=TRAIN,
    ),
    number(
        "slow_notice_s",
        "Until people notice a slow device, with detection = timeout: a timeout does not see it.",
        86400,
        most=1e9,
        metavar="S",
        commands=TRAIN,
    ),
    number(
        "repair_s",
        "Until a failed node is repaired; without a spare the run waits for it.",
        86400,
        most=1e9,
        metavar="S",
        commands=TRAIN,
    ),
    count("spare_nodes", "Nodes that stand ready for failed ones.", 2, least=0, most=65536, commands=TRAIN),
    count(
        "parity_nodes",
        "Lost nodes of a group that checkpoints in memory outlive (default 1).",
        1,
        least=0,
        most=255,
        commands=TRAIN,
    ),
    count("parity_group_nodes", "Nodes of such a group (default: at most 6).", 6, most=256, commands=TRAIN),
    word(
        "reshape_to",
        "Degrees under which the nodes that are left go on, with checkpoint = reshape.",
        "tp=4,pp=2",
        "DEGREE=N,…",
        commands=TRAIN,
    ),
    number(
        "pack_bytes_per_s",
        "What one process packs or unpacks of a checkpoint (default: free; 1e9 where layouts are reshaped).",
        1e9,
        most=1e13,
        metavar="BYTES_PER_S",
        commands=TRAIN,
    ),
    number(
        "checkpoint_file_s",
        "To open or create one file of a checkpoint (default: free; 0.005 where layouts are reshaped).",
        0.005,
        most=1e4,
        excludes_least=False,
        metavar="S",
        commands=TRAIN,
    ),
)

UNEVEN_SETTINGS: tuple[Setting, ...] = grouped(
    "Stragglers and uneven sequences",
    word(
        "worker_times",
        "A CSV of seconds, a line a round and a column a data-parallel rank: how unequal ranks are.",
        "times.csv",
        "FILE",
        commands=TRAIN,
    ),
    word(
        "straggler_coding",
        "Redundant gradients in place of waiting for the slowest ranks: gradient, selective, multiplexed.",
        "gradient",
        "NAME",
        commands=TRAIN,
    ),
    count(
        "max_stragglers", "Late ranks that the code is built for (default 1).", 4, least=0, most=65535, commands=TRAIN
    ),
    count("burst_rounds", "Rounds in a row that a rank may be late (default 1).", 1, most=1000, commands=TRAIN),
    count("window_rounds", "Rounds in which those ranks are counted (default 2).", 3, most=1000, commands=TRAIN),
    number(
        "wait_frac",
        "How much longer than the fastest rank took is waited for the others, as a share (default 1).",
        1.0,
        most=1e6,
        excludes_least=False,
        metavar="FRAC",
        commands=TRAIN,
    ),
    word(
        "seq_lengths",
        "Lengths of the sequences: a file with one number a line, or lognormal:MEDIAN:SPREAD; seq_len is the longest.",
        "lognormal:1500:2",
        "LAW|FILE",
        commands=TRAIN,
    ),
    switch(
        "sequence_balancing", "Give each sequence as many ranks as it needs, and all ranks equal work.", commands=TRAIN
    ),
)

NETWORK_CARD_SETTINGS: tuple[Setting, ...] = grouped(
    "Network cards",
    word(
        "nic_groups",
        "Groups of nodes whose network cards talk to each other: a name, its nodes, and what one node's cards carry "
        "each way (default: node_link_bytes_per_s, or the device's).",
        "ib:4:1e11,roce:4:5e10",
        "NAME:NODES[:BYTES_PER_S],…",
        commands=TRAIN,
    ),
    number(
        "nic_group_link_bytes_per_s",
        "The link (Ethernet) that a node has to the other groups, each way.",
        3.125e9,
        most=1e15,
        metavar="BYTES_PER_S",
        commands=TRAIN,
    ),
    word(
        "nic_placement",
        "adapted (stages along groups, layers to where the step gains), grouped (stages along groups), dealt (nodes of "
        "all groups in turn), one-transport (all over the link between groups).",
        "adapted",
        "NAME",
        commands=TRAIN,
    ),
)

FABRIC_SETTINGS: tuple[Setting, ...] = grouped(
    "Fabric between nodes",
    word(
        "fabric",
        "Switches between nodes: leaf-spine, or fat-tree (as many spines as nodes below a leaf). Flows that meet on a "
        "link take turns; without it none meet.",
        "leaf-spine",
        "NAME",
        commands=TRAIN,
    ),
    count("leaves", "With --fabric: leaf switches of each plane.", 4, most=4096, commands=TRAIN),
    count("hosts_per_leaf", "With --fabric: nodes below a leaf.", 4, most=4096, commands=TRAIN),
    count("spines", "With --fabric: spine switches of each plane.", 4, most=4096, commands=TRAIN),
    count(
        "planes",
        "With --fabric: like fabrics beside each other, one for each port of a node (default 1); a collective waits "
        "for the slowest.",
        8,
        most=256,
        commands=TRAIN,
    ),
    word(
        "routing",
        "With --fabric: ecmp (a hash puts each flow on a spine; default), planned (all flows in view), spray (each "
        "over all spines).",
        "planned",
        "NAME",
        commands=TRAIN,
    ),
)

GRAPH_SETTINGS: tuple[Setting, ...] = grouped(
    "Full-graph training",
    word(
        "graph",
        "Train on a whole graph: a CSV with an edge (two vertices) a line, or planted:VERTICES:DEGREE.",
        "planted:20000:30",
        "FILE|LAW",
        commands=TRAIN,
    ),
    word(
        "graph_parallel",
        "How devices share it: vertices (parts of the graph), pipeline (layers), hybrid (--graph-parts a stage).",
        "pipeline",
        "NAME",
        commands=TRAIN,
    ),
    word("graph_model", "Its layers: gcn, graphsage, gcnii, resgcn.", "gcn", "NAME", commands=TRAIN),
    count("graph_layers", "Number of those layers.", 32, most=10_000, commands=TRAIN),
    count("graph_hidden", "Their width.", 256, most=1_000_000, commands=TRAIN),
    count("graph_parts", "Parts of the graph in each stage of a hybrid.", 2, most=65536, commands=TRAIN),
    count("graph_chunks", "Chunks of the graph that follow each other through stages.", 8, most=65536, commands=TRAIN),
)

LARGEST_SETTINGS: tuple[Setting, ...] = grouped(
    "Weights and their placement",
    word(
        "weight_sampling",
        "gaussian: every micro-batch trains weights with noise of a format's width, drawn anew.",
        "gaussian",
        "NAME",
        commands=TRAIN,
    ),
    word(
        "placement",
        "Also how each weight matrix is cut over dp x tp: searched (the cheapest by bytes and kernels), two-rules (by "
        "names and shapes alone); beside Megatron's.",
        "searched",
        "NAME",
        commands=TRAIN,
    ),
    switch(
        "find_largest",
        "Also the largest GPT that the machine trains so, and with each tier of memory left out.",
        commands=TRAIN,
    ),
)

TECHNIQUE_SETTINGS: tuple[Setting, ...] = (
    *LOCAL_UPDATE_SETTINGS,
    *PARTITION_SETTINGS,
    *FAILURE_SETTINGS,
    *UNEVEN_SETTINGS,
    *NETWORK_CARD_SETTINGS,
    *FABRIC_SETTINGS,
    *GRAPH_SETTINGS,
    *LARGEST_SETTINGS,
)
"""In the order of the help page."""
