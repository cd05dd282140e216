"""Processes that exchange tensors through torch.distributed: gloo on processors, nccl (or RCCL) on GPUs."""

from datetime import timedelta
from importlib import import_module
from typing import Any

from orrery.calibrate.measure.exchange.tcp import TIMEOUT_S


class TorchGroup:
    """One member of the group that meets in the file ``rendezvous``."""

    def __init__(self, library: str, rank: int, num_processes: int, rendezvous: str) -> None:
        self._torch: Any = import_module("torch")
        self._dist: Any = import_module("torch.distributed")
        self._rank, self._count = rank, num_processes
        self._device = f"cuda:{rank}" if library == "nccl" else "cpu"
        if library == "nccl":
            self._torch.cuda.set_device(rank)
        self._dist.init_process_group(
            library,
            init_method=f"file://{rendezvous}",
            rank=rank,
            world_size=num_processes,
            timeout=timedelta(seconds=TIMEOUT_S),
        )

    def buffer(self, message_bytes: int) -> Any:
        """Zeros (and this member's part, to be gathered), whose sums stay zeros however often they are added up."""
        elements = self._count * max(1, message_bytes // (4 * self._count))
        self._own = self._torch.zeros(elements // self._count, dtype=self._torch.float32, device=self._device)
        return self._torch.zeros(elements, dtype=self._torch.float32, device=self._device)

    def barrier(self) -> None:
        """Returns once all have called it."""
        self._dist.barrier()
        self.wait()

    def run(self, kind: str, buffer: Any) -> None:
        """One collective; "send_recv" and "broadcast" go there and back between the first two."""
        match kind:
            case "all_reduce":
                self._dist.all_reduce(buffer)
            case "all_gather":
                self._dist.all_gather_into_tensor(buffer, self._own)
            case "broadcast":
                for sender in (0, 1):
                    self._dist.broadcast(buffer, src=sender)
            case _ if self._rank < 2:
                for sender in (0, 1):
                    if sender == self._rank:
                        self._dist.send(buffer, dst=1 - self._rank)
                    else:
                        self._dist.recv(buffer, src=1 - self._rank)
            case _:
                pass

    def wait(self) -> None:
        """Waits until the device is idle."""
        if self._device != "cpu":
            self._torch.cuda.synchronize()

    def close(self) -> None:
        """Leaves the group."""
        self._dist.destroy_process_group()
