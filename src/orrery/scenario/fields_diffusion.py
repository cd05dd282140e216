"""Settings of pictures and videos, of embeddings and of speech; nothing heavy is imported, so that help stays quick."""

from orrery.scenario.setting import Setting, count, grouped, number, switch, word

PICTURES = frozenset({"estimate"})

POOLING_SETTINGS: tuple[Setting, ...] = grouped(
    "Embeddings and rerankers",
    switch(
        "pooling",
        "Inputs are read and nothing is generated: one vector or score for each (encoders: the default).",
        commands=PICTURES,
    ),
)

IMAGE_NETWORK_SETTINGS: tuple[Setting, ...] = grouped(
    "Image networks",
    switch(
        "integer_only",
        "Image networks in integers: norms, softmax and GELU too, and codes between products (default: in floats).",
        commands=PICTURES,
    ),
)

SPEECH_SETTINGS: tuple[Setting, ...] = grouped(
    "Speech",
    number("audio_s", "Speech: seconds of a recording (default: one window of 30).", 600, most=1e6, commands=PICTURES),
    count("num_beams", "Speech: beams of a window (default: the runtime's).", 5, most=64, commands=PICTURES),
    count(
        "window_batch",
        "Speech: windows of one recording at once, the batch size of faster-whisper and transformers (default 1).",
        8,
        most=4096,
        commands=PICTURES,
    ),
)

DIFFUSION_SETTINGS: tuple[Setting, ...] = grouped(
    "Pictures and videos",
    count(
        "height", "Diffusion: rows of pixels (default: the pipeline's).", 1024, least=16, most=16_384, commands=PICTURES
    ),
    count(
        "width",
        "Diffusion: columns of pixels (default: the pipeline's).",
        1024,
        least=16,
        most=16_384,
        commands=PICTURES,
    ),
    count("num_frames", "Diffusion: frames of a video (default: the pipeline's).", 81, most=10_000, commands=PICTURES),
    count(
        "num_inference_steps",
        "Diffusion: denoising steps (default: the pipeline's).",
        28,
        most=10_000,
        commands=PICTURES,
    ),
    switch(
        "guidance",
        "Diffusion: classifier-free guidance, which denoises a second time without the text (default: as the pipeline "
        "does).",
        commands=PICTURES,
    ),
    count(
        "ulysses_degree",
        "Diffusion: devices that exchange tokens for heads around each attention (default 1).",
        4,
        most=1024,
        commands=PICTURES,
    ),
    count(
        "ring_degree",
        "Diffusion: devices that pass keys and values on in a ring (default 1).",
        2,
        most=1024,
        commands=PICTURES,
    ),
    count(
        "patch_parallel",
        "Diffusion: devices that each denoise some rows of the picture, with what the others had a step before "
        "(default 1).",
        4,
        most=1024,
        commands=PICTURES,
    ),
    word(
        "patch_context",
        "Diffusion: what attention of a patch reads: whole (all patches; default) or neighbour (a part of the two "
        "beside it).",
        "neighbour",
        "neighbour|whole",
        commands=PICTURES,
    ),
    number(
        "patch_read_frac",
        "Diffusion: how much of each neighbour --patch-context neighbour reads (default 0.3).",
        0.5,
        most=1.0,
        excludes_least=False,
        metavar="FRAC",
        commands=PICTURES,
    ),
    count(
        "patch_warmup_steps",
        "Diffusion: steps besides the first that wait for all patches (default 4).",
        4,
        least=0,
        most=10_000,
        commands=PICTURES,
    ),
    switch(
        "cuda_graph",
        "Diffusion: passes are replayed as CUDA graphs, so that the host launches none of their operators.",
        commands=PICTURES,
    ),
)
"""In the order of the help page."""

DIFFUSION_NAMES = tuple(setting.name for setting in DIFFUSION_SETTINGS)
