"""Tensors as the library takes them: which types there are, and memory in a row on the CPU for those that lie elsewhere."""

from __future__ import annotations

from typing import Callable

import torch

from ..memory import SIZES, Type

_NAMES = {"bool": "BOOL", "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64", "uint8": "UINT8",
          "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64", "float16": "FLOAT16", "bfloat16": "BFLOAT16",
          "float32": "FLOAT32", "float64": "FLOAT64", "complex64": "COMPLEX64"}
# Plain numbers, since an IntEnum costs more to hand to ctypes.
TYPES: dict[torch.dtype, int] = {getattr(torch, name): int(Type[kind]) for name, kind in _NAMES.items() if hasattr(torch, name)}
BYTES = int(Type.UINT8)


def kind_of(tensor: torch.Tensor) -> tuple[int, int]:
    """(type, how many of them an element is), to move it: what the library can't add up goes as bytes."""
    known = TYPES.get(tensor.dtype)
    return (known, 1) if known is not None else (BYTES, tensor.element_size())


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether the library can take it as it lies."""
    return tensor.is_cpu and tensor.layout is torch.strided and tensor.is_contiguous() and not tensor.is_conj() and \
        not tensor.is_neg()


class Staging:
    """The memory of one call: holds tensors until it is done, and what is to be done then.

    Tensors that lie in a row on the CPU are used as they are. Others are copied before the call, on the current stream of
    their device, and results are copied back after it, on that same stream; wait() makes the waiting thread's stream wait
    for that. Not thread-safe."""

    __slots__ = ("_held", "_after", "_back", "_streams", "_events")

    def __init__(self):
        self._held: list[torch.Tensor] = []
        self._after: list[Callable[[], None]] = []
        self._back: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._streams, self._events = {}, []

    def hold(self, tensor: torch.Tensor) -> torch.Tensor:
        self._held.append(tensor)
        return tensor

    def given(self, tensor: torch.Tensor) -> torch.Tensor:
        """To read from."""
        if not is_plain(tensor):
            _need_strided(tensor)
            tensor = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
        return self.hold(tensor)

    def taken(self, tensor: torch.Tensor, holds_data: bool = False, room: torch.Tensor | None = None) -> torch.Tensor:
        """To write to; holds_data: to read from as well. `room`: what comes is written there, and goes to the tensor after it."""
        if room is None and is_plain(tensor):
            return self.hold(tensor)
        _need_strided(tensor)
        if tensor.is_cuda:
            self._streams[tensor.device] = torch.cuda.current_stream(tensor.device)
        if room is None:
            room = torch.empty(tensor.shape, dtype=tensor.dtype)
            if holds_data:
                room.copy_(tensor.detach())
        self._back.append((tensor.detach(), self.hold(room)))
        return room

    def room(self, count: int, like: torch.Tensor) -> torch.Tensor:
        return self.hold(torch.empty(count, dtype=like.dtype))

    def after(self, function: Callable[[], None]) -> None:
        """Called once, when the call has gone well, before results are copied back."""
        self._after.append(function)

    def finish(self) -> None:
        for function in self._after:
            function()
        for tensor, copy in self._back:
            stream = self._streams.get(tensor.device)
            if stream is None:
                tensor.copy_(copy)
                continue
            with torch.cuda.stream(stream):
                tensor.copy_(copy)
                self._events.append((tensor.device, stream.record_event()))
        self._held, self._after, self._back = [], [], []

    def order(self) -> None:
        """What this thread's streams do from now on comes after the results."""
        for device, event in self._events:
            torch.cuda.current_stream(device).wait_event(event)


def _need_strided(tensor: torch.Tensor) -> None:
    if tensor.layout is not torch.strided:
        raise TypeError(f"a tensor of layout {tensor.layout} can't be sent: give .to_dense()")


def same_type(tensors, what: str) -> None:
    kinds = {tensor.dtype for tensor in tensors}
    if len(kinds) > 1:
        raise TypeError(f"{what}: tensors of {' and '.join(sorted(map(str, kinds)))} in one call")


def is_in_a_row(tensors: list[torch.Tensor]) -> bool:
    """Whether each begins where the one before it ends, in one piece of memory."""
    if not tensors or not all(map(is_plain, tensors)):
        return False
    storage = _storage_of(tensors[0])
    at = tensors[0].data_ptr()
    for tensor in tensors:
        if tensor.data_ptr() != at or _storage_of(tensor) != storage:
            return False
        at += tensor.numel() * tensor.element_size()
    return True


def _storage_of(tensor: torch.Tensor) -> int:
    return (tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()).data_ptr()


assert all(SIZES[Type(kind)] == torch.empty(0, dtype=dtype).element_size() for dtype, kind in TYPES.items())
