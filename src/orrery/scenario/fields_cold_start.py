"""Settings of a replica's start; nothing heavy is imported, so that help stays quick."""

from orrery.scenario.setting import START, Setting, number, switch, word

COLD_START_SETTINGS: tuple[Setting, ...] = (
    word(
        "start",
        "What it starts from: new-node, new-pod, new-process (default), snapshot, sleep-2 or sleep-1.",
        "new-node",
        "NAME",
        commands=START,
    ),
    word(
        "weights_from",
        "Where weights come from: registry, object-store, network-disk, nvme (default), page-cache or peer.",
        "object-store",
        "NAME",
        commands=START,
    ),
    number(
        "weights_bytes_per_s",
        "Rate of that path into a node (peer: into a device); default: the catalogue's.",
        10e9,
        most=1e15,
        metavar="BYTES_PER_S",
        commands=START,
    ),
    word(
        "load_format",
        "How they are loaded: safetensors (default), runai_streamer, fastsafetensors, tensorizer, sharded_state.",
        "runai_streamer",
        "NAME",
        commands=START,
    ),
    switch("compile_cache", "Compiled code is on the disk already (vLLM's cache of torch.compile).", commands=START),
    number("image_bytes", "Size of the container image, compressed.", 12e9, most=1e13, metavar="BYTES", commands=START),
    number(
        "image_bytes_per_s",
        "Rate at which a node pulls and unpacks it.",
        200e6,
        most=1e13,
        metavar="BYTES_PER_S",
        commands=START,
    ),
    number(
        "node_s",
        "Time from asking for a machine until its devices can be used, in seconds.",
        120,
        most=1e6,
        excludes_least=False,
        metavar="S",
        commands=START,
    ),
)
"""In the order of the help page."""
