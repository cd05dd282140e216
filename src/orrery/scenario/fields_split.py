"""The settings of `orrery split`; nothing heavy is imported, so that help stays quick."""

from orrery.scenario.setting import Setting, number, word

SPLIT_SETTINGS: tuple[Setting, ...] = (
    word("model", "The network: vgg-16, resnet-50, resnet-101 or resnet-152.", "resnet-50", "NAME"),
    word("device", "What takes the picture.", "raspberry-pi-4-8gb", "NAME"),
    word("server", "What is at the other end of the link.", "rtx-4090", "NAME"),
    word("link_rates", "Rates of the uplink in Mbit/s, comma-separated.", "1,10,100", "MBIT,…"),
    number("round_trip_s", "A message of no bytes, there and back.", 0.02, most=60, excludes_least=False, metavar="S"),
    number("input_bytes", "The picture as it is sent whole (default: 8 bits a colour).", 110e3, most=1e9),
    word("precision", "Format of the arithmetic, and of what crosses: fp32, fp16 or bf16 (default fp32).", "fp32", "F"),
    word("bottleneck", "Encoders to so many channels behind units, comma-separated.", "conv2_3:12", "AFTER:CHANNELS,…"),
    number("bottleneck_bits", "Bits of an element that an encoder sends (default: of the precision).", 8, most=32),
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
)
"""In the order of the help page."""

SPLIT_BY_NAME = {s.name: s for s in SPLIT_SETTINGS}
