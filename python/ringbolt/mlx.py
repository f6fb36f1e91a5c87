"""mlx.core.distributed over directly cabled machines (docs/mlx.md): the same names, on any cabling, with an end to every wait.

    import ringbolt.mlx as distributed       # instead of: from mlx.core import distributed

    group = distributed.init()
    total = distributed.all_sum(x)           # a new array; x stays as it is

Calls run at once, in the order of the program: MLX's run when their result is needed. The input is evaluated and read where it
lies, copied only if it does not lie in a row; the result is received where it stays. `stream` is taken and not needed. What
fails raises ringbolt.GroupError, which names the rank and the cable. Thread-safe as ringbolt.Group is."""

from __future__ import annotations

import atexit
import collections
import contextlib
import json
import os
import threading
from typing import Any, Callable, Sequence

try:
    import mlx.core as mx
    from mlx.utils import tree_flatten, tree_unflatten
except ModuleNotFoundError as problem:
    raise ModuleNotFoundError(f"{problem}: ringbolt.mlx needs MLX: pip install 'mlx[cpu]'", name=problem.name) from None

from . import group as groups
from ._group_library import Operation, library
from .joining import join

__all__ = ["Group", "all_gather", "all_max", "all_min", "all_sum", "average_gradients", "init", "install", "is_available",
           "recv", "recv_like", "send", "sum_scatter"]

_BACKENDS = ("any", "jaccl", "ring", "mpi", "nccl", "ringbolt")  # a program's choice of MLX's is no reason to refuse it
# Whichever is there says that a launcher has started several processes (docs/environment.md).
_LAUNCHED = ("RINGBOLT_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "JACCL_RANK", "MLX_RANK",
             "RINGBOLT_NODE", "SLURM_PROCID")
_MOST_SENDS = 64  # under way: as many may be ahead of a peer
_joining = threading.Lock()
_world: "Group | None" = None
_sends: collections.deque = collections.deque()  # requests that send() has begun and nobody has waited for


class Group:
    """As mlx.core.distributed.Group. `over`: the ringbolt.Group beneath (report(), explain(), abort(), shrink()), or None of a
    process that nobody has started with others."""

    def __init__(self, over: groups.Group | None = None):
        self.over: Any = over

    def rank(self) -> int:
        """Of this process."""
        return self.over.rank if self.over is not None else 0

    def size(self) -> int:
        """How many processes there are."""
        return self.over.size if self.over is not None else 1

    def split(self, color: int, key: int = -1) -> "Group":
        """The processes of the same color, from 0, in the order of their keys; a negative key is the rank in this group. All
        processes call it."""
        if color < 0:
            raise ValueError(f"split: color {color}: it must be from 0")
        if self.over is None:
            return Group()
        return Group(self.over.split(color, key if key >= 0 else self.rank()))

    def __repr__(self) -> str:
        return f"<ringbolt.mlx.Group: rank {self.rank()} of {self.size()}>"


def is_available(backend: str = "any") -> bool:
    """Whether libringbolt can be loaded. `backend`: as of init()."""
    _check_backend(backend)
    try:
        return library() is not None
    except OSError:
        return False


def init(strict: bool = False, backend: str = "any", *, all_gather_factory: Callable | None = None, **options) -> Group:
    """The group of all processes: joined by the first call, the same one afterwards. A process that no launcher has started is a
    group of its own, or a RuntimeError if strict. One that was started with others joins them or raises ringbolt.JoinError,
    strict or not. `backend`: any of MLX's names. all_gather_factory(rank, size) gives a function f(bytes, n) that gathers the
    n bytes of every rank. `options`: those of ringbolt.join()."""
    global _world
    _check_backend(backend)
    with _joining:
        if _world is None:
            if not options and not any(name in os.environ for name in _LAUNCHED):
                if strict:
                    raise RuntimeError(f"no launcher has started this process (none of {', '.join(_LAUNCHED)} is set): start it "
                                       "with ringbolt run or mlx.launch")
                return Group()
            if all_gather_factory is not None:
                options = _with_exchange(all_gather_factory, options)
            _world = Group(join(**options))
        return _world


def all_sum(x, *, group: Group | None = None, stream: Any = None) -> mx.array:
    """Sum of all ranks' arrays, in the order of ranks: the same bits on each."""
    return _reduced(x, "sum", group)


def all_max(x, *, group: Group | None = None, stream: Any = None) -> mx.array:
    """The greatest of each element."""
    return _reduced(x, "max", group)


def all_min(x, *, group: Group | None = None, stream: Any = None) -> mx.array:
    """The least of each element."""
    return _reduced(x, "min", group)


def all_gather(x, *, group: Group | None = None, stream: Any = None) -> mx.array:
    """The arrays of all ranks, of one shape, behind each other along the first axis; numbers become an array."""
    group = _group(group)
    n, rank = group.size(), group.rank()

    def forward(x):
        def prepare():
            shape = (n * x.shape[0], *x.shape[1:]) if x.ndim else (n,)
            return _in_a_row(x), _room(shape, x.dtype)

        return _run(group, Operation.ALL_GATHER, prepare, group.over.all_gather)

    def backward(x, cotangent, _):
        return cotangent[rank] if x.ndim == 0 else cotangent[rank * x.shape[0]:(rank + 1) * x.shape[0]]

    return _differentiable(x, group, Operation.ALL_GATHER, forward, backward, forward)


def sum_scatter(x, *, group: Group | None = None, stream: Any = None) -> mx.array:
    """The part of this rank, of as many as there are ranks along the first axis, of the sum of all ranks' arrays."""
    group = _group(group)

    def forward(x):
        def prepare():
            if x.ndim == 0 or x.shape[0] % group.size() != 0:
                raise ValueError(f"sum_scatter: shape {x.shape}: the first axis is no {group.size()} equal parts, one for each "
                                 "rank")
            return _in_a_row(x), _room((x.shape[0] // group.size(), *x.shape[1:]), x.dtype)

        return _run(group, Operation.REDUCE_SCATTER, prepare, group.over.reduce_scatter)

    return _differentiable(x, group, Operation.REDUCE_SCATTER, forward, _underivable("sum_scatter"), forward)


def send(x, dst: int, *, group: Group | None = None, stream: Any = None) -> mx.array:
    """Begins to send x, and gives x. It goes on by itself: two ranks may send to each other before either receives. That it has
    failed is raised by the next call; the end of the program waits for it."""
    group = _with_others(group, dst, "send to")

    def prepare():
        return (_in_a_row(_array(x)),)

    _run(group, Operation.SEND, prepare, lambda data: _sends.append(group.over.send_start(data, dst)), dst)
    return x


def recv(shape: Sequence[int], dtype: mx.Dtype, src: int, *, group: Group | None = None, stream: Any = None) -> mx.array:
    """The next array that rank `src` sends to this one; waits for it. Fails unless as many elements of this type come."""
    group = _with_others(group, src, "recv from")
    return _run(group, Operation.RECV, lambda: (_room(tuple(shape), dtype),), lambda out: group.over.recv(out, src), src)


def recv_like(x: mx.array, src: int, *, group: Group | None = None, stream: Any = None) -> mx.array:
    """recv() of x's shape and type."""
    return recv(x.shape, x.dtype, src, group=group)


def average_gradients(gradients: Any, group: Group | None = None, all_reduce_size: int = 32 << 20,
                      communication_stream: Any = None) -> Any:
    """As mlx.nn.average_gradients, which takes MLX's groups alone: the mean over all ranks of each array of a tree. Arrays of
    one type are put together until they have all_reduce_size bytes; 0: each goes alone."""
    group = _group(group)
    if group.size() == 1:
        return gradients
    flat: Any = tree_flatten(gradients)
    by_type: dict = {}
    for i, (_, array) in enumerate(flat):
        batches = by_type.setdefault(array.dtype, [[]])
        if sum(flat[one][1].nbytes for one in batches[-1]) >= all_reduce_size and batches[-1]:
            batches.append([])
        batches[-1].append(i)
    means: list = [None] * len(flat)
    for batch in (batch for batches in by_type.values() for batch in batches):
        mean = all_sum(mx.concatenate([flat[i][1].reshape(-1) for i in batch]), group=group) / group.size()
        first = 0
        for i in batch:
            key, array = flat[i]
            means[i] = (key, mean[first:first + array.size].reshape(array.shape))
            first += array.size
    return tree_unflatten(means) if flat else gradients


def install() -> None:
    """Puts these functions in the place of mlx.core.distributed's, for libraries that call those themselves: mlx.nn's layers
    for several machines, mlx-lm. For this process, for good. Call it before anything of mlx.core.distributed."""
    for name in __all__:
        if name not in ("average_gradients", "install"):
            setattr(mx.distributed, name, globals()[name])


# How a call is made.


def _check_backend(backend: str) -> None:
    if backend not in _BACKENDS:
        raise ValueError(f"backend {backend!r}: {', '.join(_BACKENDS)}")


def _group(group: Group | None) -> Group:
    if group is None:
        return init()
    if not isinstance(group, Group):
        raise TypeError(f"a group of type {type(group).__module__}.{type(group).__name__}: give one that ringbolt.mlx.init() or "
                        "split() of it has made")
    return group


def _with_others(group: Group | None, peer: int, verb: str) -> Group:
    group = _group(group)
    if group.size() == 1:
        raise ValueError(f"cannot {verb} rank {peer}: this process is alone in its group")
    if not 0 <= peer < group.size():
        raise ValueError(f"cannot {verb} rank {peer}: the group has ranks 0 to {group.size() - 1}")
    return group


def _array(x) -> mx.array:
    return x if isinstance(x, mx.array) else mx.array(x)


def _in_a_row(x: mx.array) -> mx.array:
    """x, evaluated; a copy only if it is transposed, sliced or broadcast."""
    x = mx.contiguous(x, stream=mx.cpu)
    try:
        mx.eval(x)
    except (RuntimeError, ValueError) as problem:
        if "function transformations" in str(problem):
            raise RuntimeError("inside of mx.compile or mx.vmap arrays have no values yet, and Ringbolt's calls run at once: "
                               "call it outside of the compiled function") from problem
        raise
    return x


def _room(shape: tuple, dtype: mx.Dtype) -> mx.array:
    """Memory for a result, which nobody else knows yet: so it may be written."""
    room = mx.zeros(shape, dtype, stream=mx.cpu)
    mx.eval(room)
    return room


def _reap() -> None:
    """Hears of sends that have ended, and waits for the oldest if they are many."""
    while _sends and (_sends[0].done() or len(_sends) >= _MOST_SENDS):
        _sends.popleft().wait()


@atexit.register
def _finish() -> None:
    while _sends:
        _sends.popleft().wait()


@contextlib.contextmanager
def _telling(group: Group, operation: Operation, peer: int):
    try:
        yield
    except Exception:
        group.over._refuse(operation, peer)
        raise


def _run(group: Group, operation: Operation, prepare: Callable, call: Callable, peer: int = 0):
    """call(*prepare()); if the arguments are bad the others learn of it, instead of waiting."""
    with _telling(group, operation, peer):
        _reap()
        prepared = prepare()
    return call(*prepared)


def _reduced(x, reduction: str, group: Group | None) -> mx.array:
    group = _group(group)

    def forward(x):
        return _run(group, Operation.ALL_REDUCE, lambda: (_in_a_row(x), _room(x.shape, x.dtype)),
                    lambda data, out: group.over.all_reduce(data, out, reduction))

    if reduction == "sum":  # MLX's derivative: each rank's own
        return _differentiable(x, group, Operation.ALL_REDUCE, forward, lambda _x, cotangent, _out: cotangent, forward)
    refused = _underivable(f"all_{reduction}")
    return _differentiable(x, group, Operation.ALL_REDUCE, forward, refused, refused)


def _differentiable(x, group: Group, operation: Operation, forward: Callable, backward: Callable, along: Callable) -> mx.array:
    """forward(x); backward is its vjp, along maps tangents."""
    if group.size() == 1:
        return _array(x)
    with _telling(group, operation, 0):
        x = _array(x)
    function: Any = mx.custom_function(forward)
    function.vjp(backward)
    function.jvp(lambda _x, tangent: along(tangent))
    return function(x)


def _underivable(name: str) -> Callable:
    def refuse(*_):
        raise RuntimeError(f"{name} has no derivative")

    return refuse


def _with_exchange(factory: Callable, options: dict) -> dict:
    """The options with the exchange that the factory makes, and with the rank and size that it asks for."""
    rank, size = (options["rank"], options["size"]) if "rank" in options else _who()
    gather = factory(rank, size)

    def exchange(mine: bytes) -> list[bytes]:
        all_ = gather(mine, len(mine))
        if len(all_) != size * len(mine):
            raise ValueError(f"all_gather_factory's function gave {len(all_)} bytes, where {size} ranks gave {len(mine)} each")
        return [all_[i:i + len(mine)] for i in range(0, len(all_), max(len(mine), 1))]

    return {**options, "rank": rank, "size": size, "exchange": exchange}


def _who() -> tuple[int, int]:
    """Rank and size as JACCL's variables have them, else as other launchers say them."""
    rank = os.environ.get("JACCL_RANK", os.environ.get("MLX_RANK"))
    path = os.environ.get("JACCL_IBV_DEVICES", os.environ.get("MLX_IBV_DEVICES"))
    if rank is not None and path is not None:
        with open(path, encoding="utf-8") as file:
            return int(rank), len(json.load(file))
    for of_rank, of_size in (("RINGBOLT_RANK", "RINGBOLT_WORLD_SIZE"), ("RANK", "WORLD_SIZE"),
                             ("RINGBOLT_NODE", "RINGBOLT_NODES")):
        if of_rank in os.environ and of_size in os.environ:
            return int(os.environ[of_rank]), int(os.environ[of_size])
    raise RuntimeError("all_gather_factory needs rank and size: set MLX_RANK and MLX_IBV_DEVICES, or give init() rank= and size=")
