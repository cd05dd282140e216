"""Request bodies, field by field; a field that an engine would obey and this one cannot is refused by name."""

import re
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct, field

from orrery.emulator.refusal import RequestError

MAX_CHOICES = 128
MAX_TOP = 20
"""Largest number of alternatives at each place: vLLM's own (``--max-logprobs``)."""

MAX_STOPS = 32
MAX_LETTERS = 256
"""Largest number of letters of one string at which an answer stops."""

MAX_SAID = 500
"""Letters of what is wrong: it may quote what was sent."""

Count = Annotated[int, Meta(ge=0, le=2**53)]
Choices = Annotated[int, Meta(ge=1, le=MAX_CHOICES)]
Word = Annotated[str, Meta(min_length=1, max_length=MAX_LETTERS)]
Words = Annotated[list[Word], Meta(max_length=MAX_STOPS)]
TokenId = Annotated[int, Meta(ge=0, le=2**53)]


class StreamOptions(Struct):
    """Options of a stream beside its text."""

    include_usage: bool = False
    continuous_usage_stats: bool = False


class Sampling(Struct, kw_only=True):
    """Sampling fields common to chat and completions."""

    model: str | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: Choices | None = 1
    max_tokens: Count | None = None
    min_tokens: Count = 0
    ignore_eos: bool = False
    stop: Word | Words | None = None
    include_stop_str_in_output: bool = False
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    temperature: Annotated[float, Meta(ge=0)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    priority: float = 0.0
    cache_salt: str | None = None
    user: str | None = None
    logprobs: bool | int | None = None
    prompt_logprobs: int | None = None
    response_format: dict[str, Any] | None = None
    structured_outputs: dict[str, Any] | None = None
    guided_json: Any = None
    guided_regex: str | None = None
    guided_choice: list[str] | None = None
    guided_grammar: str | None = None
    truncate_prompt_tokens: int | None = None
    use_beam_search: bool = False


class Part(Struct):
    """A piece of a message."""

    type: str
    text: str = ""
    thinking: str = ""
    name: str = ""
    input: Raw = field(default_factory=Raw)  # of a tool that was called
    content: Raw = field(default_factory=Raw)  # of its result


class Message(Struct):
    """One turn of a conversation."""

    role: str
    content: str | list[Part] | None = None
    tool_calls: Raw = field(default_factory=Raw)


class Chat(Sampling, kw_only=True):
    """``POST /v1/chat/completions``."""

    messages: Annotated[list[Message], Meta(min_length=1)]
    max_completion_tokens: Count | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=MAX_TOP)] | None = None
    tools: Raw = field(default_factory=Raw)
    tool_choice: str | dict[str, Any] | None = None


class Completion(Sampling, kw_only=True):
    """``POST /v1/completions``: a text, several, the tokens of one, or those of several."""

    prompt: str | list[str | TokenId | list[TokenId]]
    echo: bool = False
    suffix: str | None = None


class Claude(Struct, kw_only=True):
    """``POST /v1/messages``, in the form of Anthropic's interface."""

    model: str
    messages: Annotated[list[Message], Meta(min_length=1)]
    max_tokens: Annotated[int, Meta(ge=1, le=2**53)]
    system: str | list[Part] | None = None
    stop_sequences: Words | None = None
    stream: bool | None = False
    temperature: Annotated[float, Meta(ge=0)] | None = None
    tools: Raw = field(default_factory=Raw)
    tool_choice: dict[str, Any] | None = None


class Counted(Struct, kw_only=True):
    """``POST /v1/messages/count_tokens``: a message that is not to be answered."""

    messages: Annotated[list[Message], Meta(min_length=1)]
    model: str | None = None
    system: str | list[Part] | None = None
    tools: Raw = field(default_factory=Raw)


class Embedding(Struct, kw_only=True):
    """``POST /v1/embeddings``: inputs as a completion has prompts."""

    input: str | list[str | TokenId | list[TokenId]]
    model: str | None = None
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, Meta(ge=1)] | None = None
    user: str | None = None
    priority: float = 0.0


class TokenizeRequest(Struct):
    """``POST /tokenize``: a text, or a conversation."""

    model: str | None = None
    prompt: str | None = None
    messages: list[Message] | None = None
    return_token_strs: bool = False


class DetokenizeRequest(Struct):
    """``POST /detokenize``."""

    tokens: list[TokenId]
    model: str | None = None


Body = TypeVar("Body", bound=Struct)


def read(kind: type[Body], raw: bytes) -> Body:
    """A body as what it should be; 400 with the place of the first mistake."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        place = re.search(r"\$\.(\w+)", str(error)) or re.search(r"required field `(\w+)`", str(error))
        raise RequestError(400, f"{str(error)[:MAX_SAID]}.", place and place[1][:MAX_SAID]) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestError(400, f"The body is no JSON: {error}.") from None
    except RecursionError:
        raise RequestError(400, "The body is nested too deeply.") from None


NEVER = (
    "prompt_logprobs",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "truncate_prompt_tokens",
)
"""Fields that change an answer's words or times whatever they say."""


def check(body: Sampling) -> None:
    """Refuse what would change an answer in a way that is not emulated."""
    requested = {
        "use_beam_search": body.use_beam_search,
        **{name: getattr(body, name) is not None for name in NEVER},
    }
    if isinstance(body, Completion):
        requested |= {"echo": body.echo, "suffix": bool(body.suffix)}
    for name, is_asked in requested.items():
        if is_asked:
            raise RequestError(400, f"{name} is not emulated: answers are words without meaning. Leave it out.", name)
    if body.stream_options is not None and not body.stream:
        raise RequestError(400, "stream_options are only for streams; set stream to true.", "stream_options")
