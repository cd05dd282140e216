"""Settings of a device of one's own; nothing heavy is imported, so that help stays quick."""

from orrery.scenario.setting import Setting, word

LIKE = word(
    "like", "The known device that it resembles: what is not stated is assumed to be as there.", "rtx-4090", "NAME"
)
TITLE = word("title", "Its name.", "My GPU", "TEXT")

MAIN_FACTS = {
    "memory_capacity_bytes": "32 GB",
    "memory_bandwidth_bytes_per_s": "1.79 TB/s",
    "dense_bf16_flops_per_s": "210 TFLOP/s",
    "dense_fp8_flops_per_s": "419 TFLOP/s",
    "dense_int8_flops_per_s": "838 TOP/s",
    "dense_fp4_flops_per_s": "838 TFLOP/s",
    "power_limit_w": "575 W",
    "host_each_way_bytes_per_s": "63 GB/s",
    "scaleup_each_way_bytes_per_s": "63 GB/s",
    "vector_flops_per_s": "105 TFLOP/s",
    "num_compute_units": "170",
    "compute_clock_hz": "2407 MHz",
    "last_level_cache_bytes": "96 MiB",
    "idle_power_w": "25 W",
}
"""Facts of a data sheet that answers depend on most, each with an example."""

OWN_DEVICE_SETTINGS: tuple[Setting, ...] = (
    LIKE,
    TITLE,
    *(
        word(name, f"As the data sheet states it, with its unit; peaks are dense: {example}.", example, "VALUE")
        for name, example in MAIN_FACTS.items()
    ),
)
"""In the order of the form."""
