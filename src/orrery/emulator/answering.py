"""A request's way through: let in, answered whole or as a stream, and taken out when its client goes."""

from collections.abc import Awaitable
from typing import cast

from orrery.emulator.events import SAID, Events, usage_of
from orrery.emulator.exchange import Exchange
from orrery.emulator.forms.form import CompleteResponse, Form, TellsLogprobs
from orrery.emulator.pace import RealTimeDriver
from orrery.emulator.refusal import RequestError
from orrery.emulator.stream import Stream


async def answer(exchange: Exchange, pace: RealTimeDriver, stream: Stream, form: Form) -> None:
    """Serve a request that has been let in."""
    serving = (_events if stream.request.streams else _whole)(exchange, pace, stream, form)
    await _while_there(exchange, pace, stream, serving)


async def answer_whole(exchange: Exchange, pace: RealTimeDriver, stream: Stream, form: CompleteResponse) -> None:
    """The same where nothing can be streamed."""
    await _while_there(exchange, pace, stream, _whole(exchange, pace, stream, form))


async def _while_there(exchange: Exchange, pace: RealTimeDriver, stream: Stream, serving: Awaitable[None]) -> None:
    exchange.connection.on_lost = stream.leave
    if exchange.connection.is_lost:
        stream.leave()
    try:
        await serving
        if stream.has_left:
            await exchange.abandon()
    finally:
        exchange.connection.on_lost = None
        pace.leave(stream)


async def _whole(exchange: Exchange, pace: RealTimeDriver, stream: Stream, form: CompleteResponse) -> None:
    """Wait for everything, then send it."""
    await stream.over()
    if stream.has_left:
        return
    for choice in stream.choices:
        if choice.end in SAID:
            raise RequestError(*SAID[choice.end])
    answers = [choice.job.answer for choice in stream.choices]
    texts = [a.text(0, a.num_tokens) for a in answers]
    reasons, usage, logprobs = [a.reason for a in answers], usage_of(stream), stream.request.logprobs
    if logprobs is None:
        body = form.whole(texts, reasons, usage)
    else:
        body = cast(TellsLogprobs, form).whole(texts, reasons, usage, [await logprobs.whole(a) for a in answers])
        if stream.has_left:
            return
    await exchange.json(body)
    pace.left(max(choice.last_s for choice in stream.choices))


async def _events(exchange: Exchange, pace: RealTimeDriver, stream: Stream, form: Form) -> None:
    """Send tokens as they come. All that can be refused has been by now, so the status goes out at once."""
    await exchange.begin_events()
    greeting = form.greeting()
    if greeting and not stream.has_left:
        exchange.connection.write_chunk(greeting)
    events = Events(exchange, pace, stream, form)
    stream.on_tokens = exchange.connection.on_room = events.send
    try:
        events.send()  # what came meanwhile
        await stream.over()
    finally:
        exchange.connection.on_room = None
    if not stream.has_left:
        await exchange.last_events(events.last)
        pace.left(events.last_s)
