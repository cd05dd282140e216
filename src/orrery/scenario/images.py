"""Images in prompts: how many, of which size, and the tokens and the tower's work that they become.

Names are those of ``sglang.bench_serving --dataset-name image``. The tokens of images come on top of ``input_tokens``,
the text, as load generators count it.
"""

import re

from orrery.base.errors import ScenarioError
from orrery.catalog.models import get_model
from orrery.execution.layout import Images
from orrery.models.model import Model
from orrery.models.vision import View
from orrery.scenario.schema import Scenario

SIZES = {"4k": (2160, 3840), "1080p": (1080, 1920), "720p": (720, 1280), "360p": (360, 640)}
"""Rows and columns of pixels by name, as SGLang's load generator knows them."""

DEFAULT, MAX_SIDE, MAX_RATIO = "1080p", 65_536, 200
"""SGLang's default; the longest side that is taken, and how many times the shorter one (Qwen's processor's limit)."""

HOST_NOTE = "unpacking and resizing them on the host is not counted"


IMAGES = ("image_count", "image_resolution")
"""Settings of images in prompts."""


def image_size(word: str) -> tuple[int, int]:
    """(rows, columns) of pixels: a name, or HEIGHTxWIDTH."""
    if found := SIZES.get(word.lower()):
        return found
    match = re.fullmatch(r"(\d{1,6})x(\d{1,6})", word.lower())
    height, width = (int(x) for x in match.groups()) if match else (0, 0)
    sides = sorted((height, width))
    if not 0 < sides[0] <= sides[1] <= min(MAX_SIDE, MAX_RATIO * sides[0]):
        raise ScenarioError(
            f"image_resolution: got {word!r}; write {', '.join(SIZES)}, or HEIGHTxWIDTH in pixels, such as 1024x1024."
        )
    return height, width


def view_of(scenario: Scenario, model: Model) -> View | None:
    """Tokens of one of the scenario's images in the model's tower; None where there are none."""
    if not scenario.image_count:
        if scenario.image_resolution:
            image_size(scenario.image_resolution)
        return None
    if scenario.trace is not None or scenario.turns is not None or scenario.calls is not None:
        raise ScenarioError(
            "image_count: goes with lengths that are stated, not with a trace, turns or calls, whose prompts repeat or "
            "may hold images already; write input_tokens, or leave image_count out."
        )
    if model.tower is None:
        why = "its vision tower is not known layer by layer" if model.tower_parameters else "it reads text alone"
        raise ScenarioError(f"image_count: {model.name} takes no images here: {why}; leave image_count out.")
    return model.tower.view(*image_size(scenario.image_resolution or DEFAULT))


def prompt_tokens(scenario: Scenario, model: Model | None = None) -> int | None:
    """Text and images of a prompt; None where no length is stated."""
    if scenario.input_tokens is None or not scenario.image_count:
        return scenario.input_tokens
    view = view_of(scenario, model or get_model(scenario.model or "", scenario.assume or ""))
    return scenario.input_tokens + scenario.image_count * (view.tokens if view else 0)


def images_of(scenario: Scenario, model: Model) -> Images | None:
    """The images of a deployment's prompts."""
    view, length = view_of(scenario, model), prompt_tokens(scenario, model)
    if view is None or not scenario.image_count or not length:
        return None
    return Images(
        prompt_tokens=length / scenario.image_count,
        sequences=view.sequences,
        patches=view.sequences * view.patches,
    )


def image_notes(scenario: Scenario, model: Model) -> tuple[str, ...]:
    """Notes on the contents of prompts, or on a size that changes nothing."""
    view = view_of(scenario, model)
    if view is None:
        return ("image_resolution: changes nothing without image_count",) if scenario.image_resolution else ()
    each = f"{scenario.image_count} of {scenario.image_resolution or DEFAULT}, {view.tokens:,} tokens each"
    if scenario.input_tokens is None:
        return (f"images: {each}; {HOST_NOTE}",)
    return (
        f"images: {each} ({view.sequences * view.patches:,} patches), beside {scenario.input_tokens:,} of text: "
        f"prompts of {prompt_tokens(scenario, model):,} tokens; {HOST_NOTE}",
    )
