"""pydantic-ai against the emulator: answers of a type, texts, and streams, over both of OpenAI's interfaces."""

import asyncio
import json
import sys

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider


class Book(BaseModel):
    """What an answer is to be."""

    title: str
    pages: int


async def main(url):
    found = {}
    provider = OpenAIProvider(base_url=f"{url}/v1", api_key="none")
    for kind in (OpenAIChatModel, OpenAIResponsesModel):
        model = kind("llama", provider=provider)
        typed = await Agent(model, output_type=Book).run("Which book?")
        plain = await Agent(model, instructions="Be brief.").run("How?", model_settings={"max_tokens": 40})
        async with Agent(model).run_stream("How?", model_settings={"max_tokens": 20}) as stream:
            text = await stream.get_output()
        found[kind.__name__] = {
            "typed": type(typed.output).__name__,
            "tokens": plain.usage.output_tokens,
            "streamed": bool(text),
        }
    print(json.dumps(found))


asyncio.run(main(sys.argv[1]))
