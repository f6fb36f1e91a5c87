"""Errors as users of torch.distributed know them."""

from __future__ import annotations

import torch.distributed

from .._group_library import GroupError, library


class _WithNumber:
    """errno: what kind of failure it is, as ringbolt.GroupError has it; __cause__ is that error."""

    errno = 0


if hasattr(torch.distributed, "DistBackendError"):
    class DistributedError(_WithNumber, torch.distributed.DistBackendError):
        """A call has failed, on all ranks."""
else:
    class DistributedError(_WithNumber, RuntimeError):
        """A call has failed, on all ranks."""


def failure(code: int, text: str) -> DistributedError:
    error = DistributedError(text)
    error.errno, error.__cause__ = code, GroupError(code, text)
    return error


def failed_now(code: int) -> DistributedError:
    """Of the call of the library that this thread has just made."""
    return failure(code, library().text_of(code))
