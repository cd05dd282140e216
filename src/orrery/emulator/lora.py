"""LoRA adapters as models of their own: those named at the start, and those that are loaded while the server runs."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta, Struct

from orrery.base.errors import ScenarioError
from orrery.emulator.bodies import read
from orrery.emulator.exchange import Exchange
from orrery.emulator.refusal import RequestError

MAX_ADAPTERS = 4096
"""Adapters that may be known at a time."""

Name = Annotated[str, Meta(max_length=256)]


class LoadAdapter(Struct):
    """``POST /v1/load_lora_adapter``."""

    lora_name: Name = ""
    lora_path: Annotated[str, Meta(max_length=4096)] = ""
    load_inplace: bool = False


class UnloadAdapter(Struct):
    """``POST /v1/unload_lora_adapter``."""

    lora_name: Name = ""


@dataclass(slots=True, kw_only=True)
class LoraModules:
    """Adapters by name: their numbers in the simulator, and where they are said to lie (nothing is read there).

    ``num_slots`` adapters fit on a replica's devices at once. The first that are named at the start are there from the
    start; any other one comes in over the host's link when a request needs it.
    """

    num_slots: int
    rank: int
    paths: dict[str, str] = field(default_factory=dict[str, str])
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    next_number: int = 0

    @staticmethod
    def of(modules: Iterable[str], num_slots: int, rank: int, taken: tuple[str, ...]) -> "LoraModules":
        """The adapters of ``--lora-modules NAME=PATH``; ``taken`` are names of the model itself."""
        found = LoraModules(num_slots=num_slots, rank=rank)
        for text in modules:
            name, equals, path = text.partition("=")
            if not name or (equals and not path):
                raise ScenarioError(f"lora-modules: got {text!r}; write NAME=PATH, such as sql=adapters/sql.")
            if name in taken or name in found.paths:
                raise ScenarioError(f"lora-modules: {name!r} is there twice; give each a name of its own.")
            found._add(name, path or name)
        found.next_number = max(found.next_number, num_slots)  # the first numbers are those that are loaded already
        return found

    def _add(self, name: str, path: str) -> None:
        self.paths[name], self.numbers[name] = path, self.next_number
        self.next_number += 1

    def named(self, number: int) -> tuple[str, str] | None:
        """Name and path of an adapter; None where it has been forgotten."""
        name = next((name for name, known in self.numbers.items() if known == number), None)
        return None if name is None else (name, self.paths[name])

    def load(self, wish: LoadAdapter, taken: tuple[str, ...]) -> None:
        """Know one more; refused as vLLM refuses it."""
        if not wish.lora_name or not wish.lora_path:
            raise RequestError(400, "Both 'lora_name' and 'lora_path' must be provided.", "lora_name")
        if wish.lora_name in taken or (wish.lora_name in self.paths and not wish.load_inplace):
            raise RequestError(400, f"The lora adapter '{wish.lora_name}' has already been loaded.", "lora_name")
        if len(self.paths) >= MAX_ADAPTERS:
            raise RequestError(400, f"{MAX_ADAPTERS:,} adapters are loaded; unload some.", "lora_name")
        self._add(wish.lora_name, wish.lora_path)

    def unload(self, wish: UnloadAdapter) -> None:
        """Forget one; requests that run go on."""
        if not wish.lora_name:
            raise RequestError(400, "'lora_name' needs to be provided to unload a LoRA adapter.", "lora_name")
        if wish.lora_name not in self.paths:
            raise RequestError(404, f"The lora adapter '{wish.lora_name}' cannot be found.", "lora_name")
        del self.paths[wish.lora_name], self.numbers[wish.lora_name]


class LoraPages:
    """The paths that load and unload adapters."""

    def __init__(self, modules: LoraModules, names: tuple[str, ...]) -> None:
        self._modules, self._names = modules, names
        self.routes: dict[str, dict[str, Callable[[Exchange], Awaitable[None]]]] = {
            "/v1/load_lora_adapter": {"POST": self._load},
            "/v1/unload_lora_adapter": {"POST": self._unload},
        }

    async def _load(self, exchange: Exchange) -> None:
        wish = read(LoadAdapter, await exchange.body())
        self._modules.load(wish, self._names)
        await _say(exchange, f"Success: LoRA adapter '{wish.lora_name}' added successfully.")

    async def _unload(self, exchange: Exchange) -> None:
        wish = read(UnloadAdapter, await exchange.body())
        self._modules.unload(wish)
        await _say(exchange, f"Success: LoRA adapter '{wish.lora_name}' removed successfully.")


async def _say(exchange: Exchange, text: str) -> None:
    await exchange.whole(text.encode(errors="replace"), b"text/plain; charset=utf-8")
