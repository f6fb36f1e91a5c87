"""PyTorch's distributed package over directly cabled machines (docs/pytorch.md): the backend "ringbolt" of torch.distributed.

    import ringbolt.torch                               # where torch does not find it by itself, as those before 2.10
    torch.distributed.init_process_group("ringbolt")    # under torchrun; its store is where the ranks meet

Importing it registers the backend, once. ImportError says why it can't be had: no torch, one without torch.distributed, or
one that is too old."""

from ._torch import need_torch

need_torch()

from . import rendezvous  # noqa: E402  (it needs torch)
from .backend import register  # noqa: E402
from .process_group import ProcessGroup  # noqa: E402
from .work import Work  # noqa: E402

register()
rendezvous.register()

__all__ = ["ProcessGroup", "Work", "register"]
