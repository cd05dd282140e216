"""LTX-Video: tokens from pixels, and the time of a transformer's steps over all of them."""

from collections.abc import Iterator
from dataclasses import replace

from orrery.catalog.devices import get_device
from orrery.catalog.diffusion import get_diffusion
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.diffusion import Job
from orrery.execution.generation import generate
from orrery.models.diffusion import Block, DiffusionModel

NUM_COLOURS = 3


def predict(paper: Paper) -> Iterator[Prediction]:
    """Playback over denoising, the seconds themselves, and numbers in over numbers out."""
    setup = paper.setups["five-seconds"]
    film = job(setup)
    time_s = next(stage.time_s for stage in generate(film).stages if stage.name == "denoise")
    words = (
        f"{film.own_tokens()} tokens, {film.num_inference_steps} steps of {film.num_sequences} passes: {time_s:.2f} s "
        "without the decoder"
    )
    differs = "the decoder and the number of steps, which were not found; kernels are those of an eager framework"
    yield Prediction(
        claim="faster-than-film", predicted=setup.number("film_s") / time_s, because=words, differs=differs
    )
    yield Prediction(claim="time", predicted=time_s, because=words, differs=differs)
    pixels = setup.number("num_pixels_per_position") ** 2 * setup.number("num_frames_per_position")
    yield Prediction(
        claim="compression",
        predicted=pixels * NUM_COLOURS / setup.number("num_latent_channels"),
        because=f"{pixels:.0f} pixels of three colours become {setup.number('num_latent_channels'):.0f} numbers",
    )


def job(setup: Setup) -> Job:
    """The film on one device: 28 blocks of 32 heads of 64 over 8192 units (the config)."""
    block = Block(kind="cross", count=28, width=2048, num_heads=32, ffn_size=8192, has_qk_norm=True, has_rope=True)
    return Job(
        model=_network(setup, block),
        device=get_device(setup.word("device")),
        height=int(setup.number("num_frame_rows")),
        width=int(setup.number("num_frame_columns")),
        num_frames=int(setup.number("num_film_frames")),
        num_inference_steps=int(setup.number("num_denoising_steps")),
        batch=1,
    )


def _network(setup: Setup, block: Block) -> DiffusionModel:
    """The pipeline of a catalogued film with this paper's blocks and latents; only its passes are asked for."""
    return replace(
        get_diffusion("wan2.1-t2v-1.3b"),
        name="ltx-video",
        blocks=(block,),
        spatial=int(setup.number("num_pixels_per_position")),
        temporal=int(setup.number("num_frames_per_position")),
        patch=1,
        patch_frames=1,
        num_text_tokens=int(setup.number("num_text_tokens")),
        guidance="batched" if setup.number("num_guided_passes") == 2 else "none",
    )
