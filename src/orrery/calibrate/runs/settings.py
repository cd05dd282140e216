"""Options about runs whose logs do not state them; nothing heavy is imported, so that help stays quick."""

from orrery.scenario.setting import Setting, count, number, word

RUN_SETTINGS: tuple[Setting, ...] = (
    word("model", "The model that ran.", "llama-3.1-8b", "NAME|PATH"),
    word("device", "The device that it ran on.", "h100-sxm", "NAME|PATH"),
    count("devices", "Total number of devices.", 8),
    count("tp", "Tensor parallelism.", 8),
    count("pp", "Pipeline stages.", 2),
    count("dp", "Data-parallel replicas or ranks.", 2),
    count("ep", "Ranks that experts are spread over.", 8),
    count("cp", "Context parallelism (training).", 2),
    count("vp", "Runs of layers on each pipeline stage (training).", 4),
    word("weights", "Format of the weights.", "fp8", "FORMAT"),
    word("activations", "Format of the activations.", "fp8", "FORMAT"),
    word("kv", "Format of the cache.", "fp8", "FORMAT"),
    word("engine", "The engine that served.", "vllm", "NAME"),
    word("engine_version", "Its version.", "0.11.0", "VERSION"),
    number("input_tokens", "Mean prompt.", 1024, most=1e8, metavar="N"),
    number("output_tokens", "Mean answer.", 128, most=1e8, metavar="N"),
    count("batch", "Sequences of a static batch.", 8),
    count("concurrency", "Requests in flight.", 32),
    number("rate", "Requests a second, arriving at random.", 4, most=1e6, metavar="R"),
    count("max_num_seqs", "The engine's limit on sequences.", 256),
    count("max_num_batched_tokens", "The engine's limit on the tokens of a step.", 8192, most=100_000_000),
    count("scheduler_recv_interval", "Decode steps between its looks for new requests (SGLang).", 10),
    number("gpu_memory_utilization", "Share of memory that the engine may fill.", 0.9, most=1.0, metavar="FRAC"),
    number("seconds", "Between two scrapes of /metrics.", 60, most=1e9, metavar="S"),
    word("framework", "The framework that trained.", "megatron-lm", "NAME"),
    word("precision", "The training recipe.", "bf16", "NAME"),
    count("seq_len", "Tokens of a training sample.", 4096, most=100_000_000),
    count("global_batch", "Samples of a step.", 128, most=100_000_000),
    count("micro_batch", "Samples of a micro-batch.", 1),
    word("sharding", "What data-parallel ranks share.", "zero1", "NAME"),
    word("recompute", "What the backward pass computes again.", "selective", "NAME"),
    word("date", "The day of the runs: stands for the version where that is not said.", "2026-11-01", "DATE"),
)
"""In the order of the help page."""

COLUMNS = {
    "devices": "num_devices",
    "weights": "weights_format",
    "activations": "activations_format",
    "kv": "kv_format",
    "batch": "batch_size",
    "rate": "request_rate_per_s",
    "gpu_memory_utilization": "gpu_memory_utilization_frac",
    "date": "measured_date",
}
"""Settings whose column in a measured table has another name."""

BY_NAME = {s.name: s for s in RUN_SETTINGS}


def column_of(setting: str) -> str:
    """The column of a measured table that a setting fills."""
    return COLUMNS.get(setting, setting)
