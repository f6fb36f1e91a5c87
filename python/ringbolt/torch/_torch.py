"""What differs between versions of torch."""

from __future__ import annotations

_OLDEST = (1, 13)


def need_torch() -> None:
    """Raises ImportError where the backend can't be had."""
    try:
        import torch
    except ImportError as problem:
        raise ImportError(f"ringbolt.torch needs PyTorch ({problem}): apt install python3-torch, or pip install torch") from None
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < _OLDEST:
        raise ImportError(f"torch {torch.__version__} is too old for ringbolt.torch, which needs "
                          f"{'.'.join(map(str, _OLDEST))} or later")
    if not torch.distributed.is_available():
        raise ImportError(f"torch {torch.__version__} was built without torch.distributed (USE_DISTRIBUTED=1)")
