"""LTX-Video: tokens from pixels, and the time of a transformer's steps over all of them."""

from collections.abc import Iterator
from math import ceil

from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.patches import Picture, alone
from orrery.models.denoiser import ltx_video

NUM_COLOURS = 3


def predict(paper: Paper) -> Iterator[Prediction]:
    """Playback over denoising, the seconds themselves, and numbers in over numbers out."""
    setup = paper.setups["five-seconds"]
    film = picture(setup)
    time_s = alone(film)
    words = (
        f"{film.height * film.width} tokens, {film.num_steps} steps of {film.num_guided} passes: {time_s:.2f} s "
        "without the decoder"
    )
    differs = "the decoder and the number of steps, which were not found"
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


def picture(setup: Setup) -> Picture:
    """The film as one grid: rows of all latent frames below each other."""
    side = setup.number("num_pixels_per_position")
    frames = ceil((setup.number("num_film_frames") - 1.0) / setup.number("num_frames_per_position")) + 1
    return Picture(
        layers=tuple(ltx_video()),
        height=frames * ceil(setup.number("num_frame_rows") / side),
        width=ceil(setup.number("num_frame_columns") / side),
        num_guided=int(setup.number("num_guided_passes")),
        num_text_tokens=int(setup.number("num_text_tokens")),
        num_steps=int(setup.number("num_denoising_steps")),
        num_waiting_steps=0,
        device=get_device(setup.word("device")),
        num_devices=int(setup.number("num_devices")),
        devices_per_node=1,
    )
