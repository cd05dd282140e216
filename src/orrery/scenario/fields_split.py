"""The settings of `orrery split`; nothing heavy is imported, so that help stays quick."""

from orrery.scenario.setting import Setting, count, number, word

SPLIT_SETTINGS: tuple[Setting, ...] = (
    word(
        "model",
        "Network: vgg-16, resnet-50, mobilenet-v2, vit-b-16, …, a .toml file, or a language model.",
        "resnet-50",
        "NAME",
    ),
    count("input_tokens", "Tokens of a language model's prompt.", 128, most=1_000_000),
    word("device", "What takes the picture.", "raspberry-pi-4-8gb", "NAME"),
    word("server", "What is at the other end of the link.", "rtx-4090", "NAME"),
    word("link_rates", "Rates of the uplink in Mbit/s, comma-separated.", "1,10,100", "MBIT,…"),
    number("round_trip_s", "A message of no bytes, there and back.", 0.02, most=60, excludes_least=False, metavar="S"),
    number("input_bytes", "The picture as it is sent whole (default: 8 bits a colour).", 110e3, most=1e9),
    word("precision", "Format of the arithmetic: fp32, fp16 or bf16 (default fp32).", "fp32", "F"),
    number("sent_bits", "Bits of an element that crosses between units (default: of the precision).", 8, most=32),
    word("bottleneck", "Encoders to so many channels behind units, comma-separated.", "conv2_3:12", "AFTER:CHANNELS,…"),
    number("bottleneck_bits", "Bits of an element that an encoder sends (default: as sent_bits).", 8, most=32),
    word(
        "exits",
        "Early exits behind units, with the share of the inputs there that each answers.",
        "conv3_4:0.6",
        "AFTER[:FRAC],…",
    ),
    number(
        "easy_frac",
        "Share that exits without a share of their own answer.",
        0.6,
        most=1,
        excludes_least=False,
        metavar="FRAC",
    ),
    word(
        "converter",
        "Widths of fully connected layers that make every input easy for the first exit.",
        "784,64,784",
        "N,N,…",
    ),
    number(
        "filter_pass_frac",
        "Part of the frames that a filter on the device lets through.",
        0.5,
        most=1,
        excludes_least=False,
        metavar="FRAC",
    ),
    number("filter_macs", "Multiply-adds of that filter for a frame.", 1e7, most=1e15, excludes_least=False),
    number("sending_w", "What the device draws while it sends (default: as idle).", 4, most=1e4, metavar="W"),
    word(
        "link_trace",
        "The link over time: 4g, 5g, wifi, satellite (drawn), or a CSV of time_s,mbit_per_s.",
        "4g",
        "NAME|FILE",
    ),
    number("frames_per_s", "Inputs a second of a session over the trace (default 1).", 1, most=1000),
    number(
        "limit_s",
        "Delay that frames should keep: the widest bottleneck within it is taken.",
        0.2,
        most=3600,
        metavar="S",
    ),
    number(
        "storage_bytes_per_s",
        "Rate at which the device loads another encoder (default: encoders share weights).",
        2e7,
        most=1e12,
    ),
    number("battery_wh", "Battery of the device; the session says how long it lasts.", 15, most=1e5, metavar="WH"),
    count("seed", "Seed of a trace that is drawn (default 0).", 0, least=0, most=2**31),
)
"""In the order of the help page."""

SPLIT_BY_NAME = {s.name: s for s in SPLIT_SETTINGS}
