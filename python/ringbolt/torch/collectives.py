"""The collectives of c10d, made of the library's. Each has a plan: which calls of the library it is, on which memory. All
arguments are looked at before the first call begins, so that a rank that has to refuse them tells the others, who would wait
for it."""

from __future__ import annotations

import ctypes
import math
from datetime import timedelta
from typing import Any, Callable

import torch

from .._group_library import Operation, library
from ..group import Reduction
from .staging import TYPES, Staging, is_in_a_row, is_plain, kind_of, same_type
from .work import Work, begin_all

_c10d = torch._C._distributed_c10d
_UNSET = timedelta(milliseconds=-1)  # c10d's: the group's own limit
_SUM = int(Reduction.SUM)
_kinds = _c10d.ReduceOp.RedOpType if hasattr(_c10d.ReduceOp, "RedOpType") else _c10d.ReduceOp
_REDUCTIONS = {int(_kinds.SUM): _SUM, int(_kinds.PRODUCT): int(Reduction.PROD), int(_kinds.MIN): int(Reduction.MIN),
               int(_kinds.MAX): int(Reduction.MAX), int(_kinds.AVG): int(Reduction.AVG)}
_BITWISE = {int(_kinds.BAND): torch.bitwise_and, int(_kinds.BOR): torch.bitwise_or, int(_kinds.BXOR): torch.bitwise_xor}
_NAMES = {int(_kinds.__members__[name]): name for name in _kinds.__members__}

_Call = tuple  # (function of the library, its arguments between the group and the limit of time)


def _number_of(reduction: Any) -> int:
    return int(getattr(reduction, "op", reduction))


if all(hash(_c10d.ReduceOp(kind)) == int(kind) for name, kind in _kinds.__members__.items() if name != "PREMUL_SUM"):
    _number_of = hash  # as torch has it, in a third of the time


class Collectives:
    """`connection`, `_n` (how many ranks), `_self` (which one this is): a process group's."""

    def _run(self, operation: Operation, opts: Any, plan: Callable, *arguments, n_calls: int = 1) -> Work:
        """plan(staging, *arguments) gives (calls, result)."""
        connection = self.connection
        connection.alive()
        staging = Staging()
        try:
            limit_ms = connection.timeout_ms
            if opts is not None and opts.timeout != _UNSET:
                limit_ms = max(1, math.ceil(opts.timeout.total_seconds() * 1000))
            calls, result = plan(staging, *arguments)
        except Exception:
            connection.refuse(operation, max(1, n_calls))
            raise
        return begin_all(connection, calls, limit_ms, result, staging)

    # To all.

    def allreduce(self, tensors, opts=None) -> Work:
        """What is called most goes a shorter way, if everything is as always: the limit of time, one tensor, in a row."""
        if opts is not None and len(tensors) == 1 and opts.timeout == _UNSET:
            [tensor] = tensors
            kind, reduction = TYPES.get(tensor.dtype), _REDUCTIONS.get(_number_of(opts.reduceOp))
            if kind is not None and reduction is not None and is_plain(tensor):
                at = tensor.data_ptr()
                return self.connection.begin(self._all_reduce_start, (at, at, tensor.numel(), kind, reduction), tensors)
        return self._run(Operation.ALL_REDUCE, opts, self._plan_all_reduce, tensors, opts)

    def allreduce_coalesced(self, tensors, opts=None) -> Work:
        def plan(staging):
            calls = [self._plan_all_reduce(staging, [tensor], opts)[0][0] for tensor in tensors]
            return calls, list(tensors)
        return self._run(Operation.ALL_REDUCE, opts, plan, n_calls=len(tensors))

    def _plan_all_reduce(self, staging, tensors, opts):
        tensor = _only(tensors, "all_reduce")
        number = 0 if opts is None else _number_of(opts.reduceOp)
        if number in _BITWISE:
            return [self._gathered(staging, tensor, tensor, number)], [tensor]
        data = staging.taken(tensor, holds_data=True)
        at, count, kind, reduction = self._reducible(data, number)
        return [(library().all_reduce_start, (at, at, count, kind, reduction))], [tensor]

    def broadcast(self, tensors, opts=None) -> Work:
        return self._run(Operation.BROADCAST, opts, self._plan_broadcast, tensors, 0 if opts is None else opts.rootRank)

    def _plan_broadcast(self, staging, tensors, root):
        tensor = _only(tensors, "broadcast")
        data = staging.given(tensor) if root == self._self else staging.taken(tensor)
        kind, per_element = kind_of(data)
        return [(library().broadcast_start, (data.data_ptr(), data.numel() * per_element, kind, root))], [tensor]

    def barrier(self, opts=None) -> Work:
        return self._run(Operation.BARRIER, opts, lambda staging: ([(library().barrier_start, ())], []))

    # To one.

    def reduce(self, tensors, opts) -> Work:
        return self._run(Operation.REDUCE, opts, self._plan_reduce, tensors, opts)

    def _plan_reduce(self, staging, tensors, opts):
        tensor, root, number = _only(tensors, "reduce"), opts.rootRank, _number_of(opts.reduceOp)
        if number in _BITWISE:
            return [self._gathered(staging, tensor, tensor if root == self._self else None, number)], [tensor]
        data = staging.taken(tensor, holds_data=True) if root == self._self else staging.given(tensor)
        at, count, kind, reduction = self._reducible(data, number)
        return [(library().reduce_start, (at, at if root == self._self else None, count, kind, reduction, root))], [tensor]

    def gather(self, output_tensors, input_tensors, opts) -> Work:
        return self._run(Operation.GATHER, opts, self._plan_gather, output_tensors, input_tensors, opts.rootRank)

    def _plan_gather(self, staging, outputs, inputs, root):
        tensor = _only(inputs, "gather")
        data = staging.given(tensor)
        kind, per_element = kind_of(data)
        out, result = None, []
        if root == self._self:
            result = self._one_for_each(_only(outputs, "gather's outputs"), "gather's outputs")
            for one in result:
                _need(one.numel() == tensor.numel(), f"gather: room for {one.numel()} elements, where {tensor.numel()} come")
            same_type([tensor, *result], "gather")
            out = self._parts_to_write(staging, result).data_ptr()
        return [(library().gather_start, (data.data_ptr(), out, data.numel() * per_element, kind, root))], result

    def scatter(self, output_tensors, input_tensors, opts) -> Work:
        return self._run(Operation.SCATTER, opts, self._plan_scatter, output_tensors, input_tensors, opts.rootRank)

    def _plan_scatter(self, staging, outputs, inputs, root):
        tensor = _only(outputs, "scatter")
        kind, per_element = kind_of(tensor)
        given = None
        if root == self._self:
            parts = self._one_for_each(_only(inputs, "scatter's inputs"), "scatter's inputs")
            for part in parts:
                _need(part.numel() == tensor.numel(), f"scatter: {part.numel()} elements for room for {tensor.numel()}")
            same_type([tensor, *parts], "scatter")
            given = self._parts_to_read(staging, parts).data_ptr()
        out = staging.taken(tensor)
        return [(library().scatter_start, (given, out.data_ptr(), tensor.numel() * per_element, kind, root))], [tensor]

    # From all to all.

    def allgather(self, output_tensors, input_tensors, opts=None) -> Work:
        return self._run(Operation.ALL_GATHER, opts, self._plan_all_gather_parts, output_tensors, input_tensors)

    def _plan_all_gather_parts(self, staging, outputs, inputs):
        tensor = _only(inputs, "all_gather")
        parts = self._one_for_each(_only(outputs, "all_gather's outputs"), "all_gather's outputs")
        return [self._gathered_parts(staging, parts, tensor)], parts

    def _gathered_parts(self, staging, parts, tensor) -> _Call:
        same_type([tensor, *parts], "all_gather")
        _need(parts[self._self].numel() == tensor.numel(),
              f"all_gather: room for {parts[self._self].numel()} elements of this rank, which gives {tensor.numel()}")
        data, out = staging.given(tensor), self._parts_to_write(staging, parts)
        kind, per_element = kind_of(data)
        sizes = [part.numel() * per_element for part in parts]
        if min(sizes) == max(sizes):
            return library().all_gather_start, (data.data_ptr(), out.data_ptr(), sizes[0], kind)
        return library().all_gatherv_start, (data.data_ptr(), out.data_ptr(), self._counts(sizes), kind)

    def allgather_coalesced(self, output_lists, input_list, opts=None) -> Work:
        """output_lists: of each rank those of input_list."""
        def plan(staging):
            _need(len(output_lists) == self._n and all(len(one) == len(input_list) for one in output_lists),
                  f"all_gather_coalesced: {len(input_list)} outputs for each of {self._n} ranks are needed")
            calls = [self._gathered_parts(staging, [of_rank[i] for of_rank in output_lists], tensor)
                     for i, tensor in enumerate(input_list)]
            return calls, [tensor for of_rank in output_lists for tensor in of_rank]
        return self._run(Operation.ALL_GATHER, opts, plan, n_calls=len(input_list))

    def _allgather_base(self, output, input, opts=None) -> Work:  # noqa: A002 (c10d's name)
        return self._run(Operation.ALL_GATHER, opts, lambda staging: ([self._plan_all_gather(staging, output, input)], [output]))

    all_gather_single = _allgather_base

    def allgather_into_tensor_coalesced(self, outputs, inputs, opts=None) -> Work:
        def plan(staging):
            _same_number(outputs, inputs, "all_gather_into_tensor_coalesced")
            return [self._plan_all_gather(staging, *pair) for pair in zip(outputs, inputs)], list(outputs)
        return self._run(Operation.ALL_GATHER, opts, plan, n_calls=len(inputs))

    all_gather_single_coalesced = allgather_into_tensor_coalesced

    def _plan_all_gather(self, staging, output, tensor) -> _Call:
        same_type([output, tensor], "all_gather")
        _need(output.numel() == tensor.numel() * self._n,
              f"all_gather: room for {output.numel()} elements, where {self._n} times {tensor.numel()} come")
        data, out = staging.given(tensor), staging.taken(output)
        kind, per_element = kind_of(data)
        return library().all_gather_start, (data.data_ptr(), out.data_ptr(), data.numel() * per_element, kind)

    def reduce_scatter(self, output_tensors, input_tensors, opts) -> Work:
        return self._run(Operation.REDUCE_SCATTER, opts, self._plan_reduce_scatter_parts, output_tensors, input_tensors, opts)

    def _plan_reduce_scatter_parts(self, staging, outputs, inputs, opts):
        tensor = _only(outputs, "reduce_scatter")
        parts = self._one_for_each(_only(inputs, "reduce_scatter's inputs"), "reduce_scatter's inputs")
        same_type([tensor, *parts], "reduce_scatter")
        _need(parts[self._self].numel() == tensor.numel(),
              f"reduce_scatter: room for {tensor.numel()} elements, where {parts[self._self].numel()} come")
        number = _number_of(opts.reduceOp)
        if len({part.numel() for part in parts}) > 1:
            return self._plan_reductions(staging, tensor, parts, number), [tensor]
        return [self._scattered(staging, tensor, self._parts_to_read(staging, parts), number)], [tensor]

    def _plan_reductions(self, staging, tensor, parts, number) -> list[_Call]:
        """Parts of different sizes: each is reduced to its rank."""
        calls = []
        out = staging.taken(tensor)
        for root, part in enumerate(parts):
            data = staging.given(part)
            at, count, kind, reduction = self._reducible(data, number)
            calls.append((library().reduce_start, (at, out.data_ptr() if root == self._self else None, count, kind, reduction,
                                                   root)))
        return calls

    def _reduce_scatter_base(self, output, input, opts) -> Work:  # noqa: A002 (c10d's name)
        return self._run(Operation.REDUCE_SCATTER, opts,
                         lambda staging: ([self._plan_reduce_scatter(staging, output, input, opts)], [output]))

    reduce_scatter_single = _reduce_scatter_base

    def reduce_scatter_tensor_coalesced(self, outputs, inputs, opts) -> Work:
        def plan(staging):
            _same_number(outputs, inputs, "reduce_scatter_tensor_coalesced")
            return [self._plan_reduce_scatter(staging, *pair, opts) for pair in zip(outputs, inputs)], list(outputs)
        return self._run(Operation.REDUCE_SCATTER, opts, plan, n_calls=len(inputs))

    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    def _plan_reduce_scatter(self, staging, output, tensor, opts) -> _Call:
        same_type([output, tensor], "reduce_scatter")
        _need(tensor.numel() == output.numel() * self._n,
              f"reduce_scatter: {tensor.numel()} elements for room for {output.numel()} on each of {self._n} ranks")
        return self._scattered(staging, output, staging.given(tensor), _number_of(opts.reduceOp))

    def _scattered(self, staging, output, data, number) -> _Call:
        if number in _BITWISE:
            function, gathered, count = _bitwise(number, data), staging.room(data.numel(), data), output.numel()
            out = staging.taken(output)
            staging.after(lambda: _fold(gathered.view(self._n, -1), out, function))
            sizes = self._counts([count] * self._n)
            return library().all_to_allv_start, (data.data_ptr(), sizes, gathered.data_ptr(), sizes, TYPES[data.dtype])
        at, count, kind, reduction = self._reducible(data, number)
        return library().reduce_scatter_start, (at, staging.taken(output).data_ptr(), count // self._n, kind, reduction)

    def alltoall_base(self, output, input, output_split_sizes, input_split_sizes, opts=None) -> Work:  # noqa: A002
        return self._run(Operation.ALL_TO_ALLV, opts, self._plan_all_to_all, output, input, output_split_sizes, input_split_sizes)

    all_to_all_single = alltoall_base

    def _plan_all_to_all(self, staging, output, tensor, received, sent):
        same_type([output, tensor], "all_to_all_single")
        data, out = staging.given(tensor), staging.taken(output)
        kind, per_element = kind_of(data)
        return [(library().all_to_allv_start,
                 (data.data_ptr(), self._split(tensor, sent, per_element, "input"), out.data_ptr(),
                  self._split(output, received, per_element, "output"), kind))], [output]

    def alltoall(self, output_tensors, input_tensors, opts=None) -> Work:
        return self._run(Operation.ALL_TO_ALLV, opts, self._plan_all_to_all_parts, output_tensors, input_tensors)

    def _plan_all_to_all_parts(self, staging, outputs, inputs):
        outputs, inputs = self._one_for_each(outputs, "all_to_all's outputs"), self._one_for_each(inputs, "all_to_all's inputs")
        same_type([*outputs, *inputs], "all_to_all")
        data, out = self._parts_to_read(staging, inputs), self._parts_to_write(staging, outputs)
        kind, per_element = kind_of(inputs[0])
        return [(library().all_to_allv_start,
                 (data.data_ptr(), self._counts([part.numel() * per_element for part in inputs]), out.data_ptr(),
                  self._counts([part.numel() * per_element for part in outputs]), kind))], list(outputs)

    # What plans share.

    def _reducible(self, data: torch.Tensor, number: int) -> tuple[int, int, int, int]:
        """(address, count, type, reduction). `data` are plain."""
        reduction, kind, count = _REDUCTIONS.get(number), TYPES.get(data.dtype), data.numel()
        if reduction is None:
            _bitwise(number, data)
        if data.dtype is torch.complex128 and number in (int(_kinds.SUM), int(_kinds.AVG)):
            kind, count = TYPES[torch.float64], 2 * count  # pairs, added up each for itself
        if kind is None:
            raise TypeError(f"elements of {data.dtype} can't be reduced")
        return data.data_ptr(), count, kind, reduction

    def _gathered(self, staging, tensor, out, number) -> _Call:
        """A reduction that the library does not have: of what all ranks gave."""
        data = staging.given(tensor)
        function = _bitwise(number, data)
        gathered = staging.room(self._n * data.numel(), data)
        if out is not None:
            target = staging.taken(out)
            staging.after(lambda: _fold(gathered.view(self._n, -1), target, function))
        return library().all_gather_start, (data.data_ptr(), gathered.data_ptr(), data.numel(), TYPES[data.dtype])

    def _one_for_each(self, tensors, what: str) -> list[torch.Tensor]:
        _need(len(tensors) == self._n, f"{what}: {len(tensors)} tensors, where each of {self._n} ranks needs one")
        return list(tensors)

    def _counts(self, sizes: list[int]):
        return (ctypes.c_size_t * self._n)(*sizes)

    def _split(self, tensor, sizes, per_element: int, what: str):
        """Elements for each rank, of rows: those of the first dimension."""
        rows = tensor.size(0) if tensor.dim() > 0 else 1
        if not sizes:
            _need(rows % self._n == 0, f"all_to_all_single: {rows} rows of {what} are no {self._n} equal parts")
            sizes = [rows // self._n] * self._n
        _need(len(sizes) == self._n and sum(sizes) == rows and min(sizes) >= 0,
              f"all_to_all_single: {what} splits {list(sizes)} of {rows} rows for {self._n} ranks")
        row = tensor.numel() // rows * per_element if rows > 0 else 0
        return self._counts([size * row for size in sizes])

    def _parts_to_read(self, staging, parts) -> torch.Tensor:
        """One after the other, as they lie if they lie so."""
        if is_in_a_row(parts):
            return staging.hold(_whole(parts))
        return staging.hold(torch.cat([staging.given(part).reshape(-1) for part in parts]))

    def _parts_to_write(self, staging, parts) -> torch.Tensor:
        if is_in_a_row(parts):
            return staging.hold(_whole(parts))
        room = staging.room(sum(part.numel() for part in parts), parts[0])
        at = 0
        for part in parts:
            staging.taken(part, room=room[at:at + part.numel()].view(part.shape))
            at += part.numel()
        return room


def _whole(parts) -> torch.Tensor:
    """Of parts in a row, the row."""
    return parts[0].detach().as_strided((sum(part.numel() for part in parts),), (1,))


def _only(tensors, what: str) -> Any:
    _need(len(tensors) == 1, f"{what}: {len(tensors)} tensors, where a rank has one")
    return tensors[0]


def _need(is_so: bool, words: str) -> None:
    if not is_so:
        raise ValueError(words)


def _same_number(outputs, inputs, what: str) -> None:
    _need(len(outputs) == len(inputs), f"{what}: {len(outputs)} outputs for {len(inputs)} inputs")


def _bitwise(number: int, data: torch.Tensor) -> Callable:
    function = _BITWISE.get(number)
    if function is None:
        raise ValueError(f"the reduction {_NAMES.get(number, number)} is not supported: scale before the call and take SUM"
                         if _NAMES.get(number) == "PREMUL_SUM" else f"there is no reduction {_NAMES.get(number, number)}")
    if data.dtype.is_floating_point or data.dtype.is_complex:
        raise TypeError(f"{_NAMES[number]} of {data.dtype}: it is for integers and bool")
    return function


def _fold(rows: torch.Tensor, out: torch.Tensor, function: Callable) -> None:
    total = rows[0]
    for row in rows[1:]:
        total = function(total, row)
    out.copy_(total.view(out.shape))
