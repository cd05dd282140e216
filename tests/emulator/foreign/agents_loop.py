"""openai-agents against the emulator: a loop with a tool, whole and streamed, and an answer of a type."""

import asyncio
import json
import sys

from agents import Agent, ModelSettings, Runner, function_tool, set_tracing_disabled
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from agents.models.openai_responses import OpenAIResponsesModel
from openai import AsyncOpenAI
from pydantic import BaseModel

set_tracing_disabled(True)
calls = []


@function_tool
def weather(place: str, days: int) -> str:
    """The weather of a place."""
    calls.append((place, days))
    return "sun"


class Book(BaseModel):
    """What an answer is to be."""

    title: str
    pages: int


async def main(url):
    found = {}
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
        calls.clear()
        model = kind(model="llama", openai_client=client)
        forced = ModelSettings(tool_choice="required")  # after a call the framework lets the model choose
        agent = Agent(name="a", instructions="Be brief.", tools=[weather], model=model, model_settings=forced)
        whole = await Runner.run(agent, "How is the weather?")
        streamed = Runner.run_streamed(agent, "How is the weather?")
        num_events = sum([1 async for _ in streamed.stream_events()])
        typed = await Runner.run(Agent(name="b", model=model, output_type=Book), "Which book?")
        found[kind.__name__] = {
            "turns": len(whole.raw_responses),
            "calls": len(calls),
            "answers": [bool(whole.final_output), bool(streamed.final_output)],
            "events": num_events,
            "typed": type(typed.final_output).__name__,
        }
    print(json.dumps(found))


asyncio.run(main(sys.argv[1]))
