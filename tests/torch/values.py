"""Cases of torch_rank.py: every collective of c10d, against what gloo or plain arithmetic gives."""

import functools
import itertools

import torch
import torch.distributed as dist

from ranks import EXTENT, RANK, SIZE, data, near, same

Op = dist.ReduceOp
INTEGERS = [torch.uint8, torch.int8, torch.int32, torch.int64]
DTYPES = [torch.float32, torch.int64] if EXTENT == "quick" else [
    torch.bool, torch.int16, torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.complex64, *INTEGERS]
REDUCTIONS = {"SUM": Op.SUM, "PRODUCT": Op.PRODUCT, "MIN": Op.MIN, "MAX": Op.MAX, "BAND": Op.BAND, "BOR": Op.BOR, "BXOR": Op.BXOR}


@functools.lru_cache(None)
def gloo():
    return dist.new_group(backend="gloo")


def every():
    yield from itertools.product(DTYPES, [0, 1, 1009])
    if EXTENT == "grid":
        for dtype in (torch.bfloat16, torch.float32, torch.int64):
            yield dtype, (1 << 20) // torch.empty(0, dtype=dtype).element_size() + 3


def all_data(count, dtype):
    return [data(count, dtype, of=rank) for rank in range(SIZE)]


def reduced(name, parts):
    """In the order of ranks, 16-bit numbers in float32 and rounded once."""
    dtype = parts[0].dtype
    wide = [part.float() if dtype in (torch.float16, torch.bfloat16) else part for part in parts]
    total = wide[0].clone()
    for part in wide[1:]:
        total = {"SUM": torch.logical_or if dtype is torch.bool else torch.add, "MIN": torch.minimum, "MAX": torch.maximum,
                 "PRODUCT": torch.logical_and if dtype is torch.bool else torch.mul, "BAND": torch.bitwise_and,
                 "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor}[name](total, part)
    return total.to(dtype)


def fits(name, dtype):
    if name.startswith("B"):
        return not dtype.is_floating_point and not dtype.is_complex
    return not (dtype.is_complex and name in ("MIN", "MAX", "PRODUCT"))


def reductions():
    for dtype, count in every():
        for name, op in REDUCTIONS.items():
            if not fits(name, dtype):
                continue
            words = f"{name} of {count} {dtype}"
            expected = reduced(name, all_data(count, dtype))
            tensor = data(count, dtype)
            dist.all_reduce(tensor, op)
            same([tensor], [expected], f"all_reduce {words}")
            if dtype in INTEGERS + [torch.float32, torch.float64] and count > 0:
                theirs = data(count, dtype)
                dist.all_reduce(theirs, op, group=gloo())
                near([tensor], [theirs], f"gloo's all_reduce {words}")
            root = (count + 1) % SIZE
            tensor = data(count, dtype)
            dist.reduce(tensor, root, op)
            if RANK == root:
                same([tensor], [expected], f"reduce {words}")
            else:
                same([tensor], [data(count, dtype)], f"reduce elsewhere {words}")
    tensor = data(10, torch.float64)
    dist.all_reduce(tensor, Op.AVG)
    near([tensor], [reduced("SUM", all_data(10, torch.float64)) / SIZE], "AVG")


def scattered_reductions():
    for dtype, count in every():
        for name, op in REDUCTIONS.items():
            if fits(name, dtype):
                parts = [data(count * SIZE, dtype, of=rank) for rank in range(SIZE)]
                expected = reduced(name, parts)[RANK * count:][:count]
                out = torch.empty(count, dtype=dtype)
                dist.reduce_scatter(out, list(parts[RANK].view(SIZE, -1)) if count else [out.clone() for _ in range(SIZE)], op)
                same([out], [expected], f"reduce_scatter {name} of {count} {dtype}")
                apart = [part.clone() for part in parts[RANK].view(SIZE, -1)] if count else [out.clone() for _ in range(SIZE)]
                out.zero_()
                dist.reduce_scatter(out, apart, op)
                same([out], [expected], f"reduce_scatter of parts {name} of {count} {dtype}")
                out.zero_()
                dist.reduce_scatter_tensor(out, parts[RANK], op)
                same([out], [expected], f"reduce_scatter_tensor {name} of {count} {dtype}")
    parts = [[data(3 * (r + 1), of=rank + r) for r in range(SIZE)] for rank in range(SIZE)]
    out = torch.empty(3 * (RANK + 1))
    dist.reduce_scatter(out, parts[RANK])
    same([out], [reduced("SUM", [part[RANK] for part in parts])], "reduce_scatter, uneven")


def moved():
    for dtype, count in every():
        words = f"of {count} {dtype}"
        mine, everybody = data(count, dtype), all_data(count, dtype)
        root = count % SIZE
        tensor = mine.clone() if RANK == root else torch.empty_like(mine)
        dist.broadcast(tensor, root)
        same([tensor], [everybody[root]], f"broadcast {words}")
        out = [torch.empty_like(mine) for _ in range(SIZE)]
        dist.all_gather(out, mine)
        same(out, everybody, f"all_gather {words}")
        if dtype in INTEGERS + [torch.float32] and count > 0:
            theirs = [torch.empty_like(mine) for _ in range(SIZE)]
            dist.all_gather(theirs, mine, group=gloo())
            same(out, theirs, f"gloo's all_gather {words}")
        room = torch.empty(SIZE, count, dtype=dtype)
        dist.all_gather(list(room), mine)  # rows of one tensor: nothing is copied
        same(room, everybody, f"all_gather into rows {words}")
        room = torch.empty(SIZE * count, dtype=dtype)
        dist.all_gather_into_tensor(room, mine)
        same([room], [torch.cat(everybody)], f"all_gather_into_tensor {words}")
        out = [torch.empty_like(mine) for _ in range(SIZE)] if RANK == root else None
        dist.gather(mine, out, root)
        same(out or [], everybody if RANK == root else [], f"gather {words}")
        tensor = torch.empty_like(mine)
        dist.scatter(tensor, everybody if RANK == root else None, root)
        same([tensor], [mine], f"scatter {words}")
        given = [data(count, dtype, of=RANK * SIZE + r) for r in range(SIZE)]
        out = [torch.empty_like(mine) for _ in range(SIZE)]
        dist.all_to_all(out, given)
        expected = [data(count, dtype, of=r * SIZE + RANK) for r in range(SIZE)]
        same(out, expected, f"all_to_all {words}")
        room = torch.empty(SIZE * count, dtype=dtype)
        dist.all_to_all_single(room, torch.cat(given))
        same([room], [torch.cat(expected)], f"all_to_all_single {words}")


def uneven():
    sent, received = [RANK + r for r in range(SIZE)], [r + RANK for r in range(SIZE)]
    given = [data(2 * (RANK + r), of=RANK * SIZE + r, shape=(-1, 2)) for r in range(SIZE) if RANK + r > 0]
    room = torch.empty(sum(received), 2)
    dist.all_to_all_single(room, torch.cat([torch.empty(0, 2), *given]), received, sent)
    parts = [data(2 * (r + RANK), of=r * SIZE + RANK, shape=(-1, 2)) for r in range(SIZE) if r + RANK > 0]
    same([room], [torch.cat([torch.empty(0, 2), *parts])], "all_to_all_single, uneven")
    out = [torch.empty(3 * r + 1) for r in range(SIZE)]
    dist.all_gather(out, data(3 * RANK + 1))
    same(out, [data(3 * r + 1, of=r) for r in range(SIZE)], "all_gather, uneven")
    out = [torch.empty(r + RANK) for r in range(SIZE)]
    dist.all_to_all(out, [data(RANK + r, of=RANK) for r in range(SIZE)])
    same(out, [data(r + RANK, of=r) for r in range(SIZE)], "all_to_all, uneven")


def coalesced():
    group = dist.group.WORLD
    tensors = [data(count, dtype) for count, dtype in ((5, torch.float32), (0, torch.int64), (100, torch.int64))]
    expected = [reduced("SUM", all_data(one.numel(), one.dtype)) for one in tensors]
    group.allreduce_coalesced(tensors, torch._C._distributed_c10d.AllreduceCoalescedOptions()).wait()
    same(tensors, expected, "allreduce_coalesced")
    given = [data(5), data(7, torch.int64)]
    out = [[torch.empty_like(one) for one in given] for _ in range(SIZE)]
    group.allgather_coalesced(out, given).wait()
    same(sum(out, []), [data(one.numel(), one.dtype, of=r) for r in range(SIZE) for one in given], "allgather_coalesced")
    rooms = [torch.empty(SIZE * one.numel(), dtype=one.dtype) for one in given]
    group.allgather_into_tensor_coalesced(rooms, given).wait()
    same(rooms, [torch.cat(all_data(one.numel(), one.dtype)) for one in given], "allgather_into_tensor_coalesced")
    rooms = [torch.empty(2), torch.empty(3)]
    given = [data(2 * SIZE), data(3 * SIZE)]
    opts = torch._C._distributed_c10d.ReduceScatterOptions()
    group.reduce_scatter_tensor_coalesced(rooms, given, opts).wait()
    expected = [reduced("SUM", all_data(n * SIZE, torch.float32))[RANK * n:][:n] for n in (2, 3)]
    same(rooms, expected, "reduce_scatter_tensor_coalesced")


def objects():
    found = [None] * SIZE
    dist.all_gather_object(found, {"rank": RANK, "padding": "x" * 100 * RANK})
    assert [one["rank"] for one in found] == list(range(SIZE))
    some = [RANK, "of rank", {RANK}] if RANK == SIZE - 1 else [None] * 3
    dist.broadcast_object_list(some, SIZE - 1)
    assert some == [SIZE - 1, "of rank", {SIZE - 1}]
    found = [None] * SIZE if RANK == 0 else None
    dist.gather_object((RANK,), found)
    assert RANK != 0 or found == [(r,) for r in range(SIZE)]
    out = [None]
    dist.scatter_object_list(out, [f"for {r}" for r in range(SIZE)] if RANK == 0 else None)
    assert out == [f"for {RANK}"]


def layouts():
    """Tensors that don't lie in a row, or are views that are worked out only when they are read."""
    matrix = data(12, shape=(3, 4)).t()
    dist.all_reduce(matrix)
    expected = reduced("SUM", [one.view(3, 4).t().contiguous() for one in all_data(12, torch.float32)])
    same([matrix.contiguous()], [expected], "transposed")
    column = torch.zeros(SIZE, 6)[:, ::2]
    dist.all_gather(list(column), data(6)[::2])
    same(column, [one[::2] for one in all_data(6, torch.float32)], "every second one")
    conjugated = torch.tensor([1 + 2j * RANK], dtype=torch.complex64).conj()
    found = [torch.empty(1, dtype=torch.complex64) for _ in range(SIZE)]
    dist.group.WORLD.allgather([found], [conjugated]).wait()
    same(found, [torch.tensor([1 - 2j * r], dtype=torch.complex64) for r in range(SIZE)], "conjugated")
    wide = torch.full((4,), 1 + RANK * 1j, dtype=torch.complex128)
    dist.all_reduce(wide)
    same([wide], [torch.full((4,), SIZE + sum(range(SIZE)) * 1j, dtype=torch.complex128)], "complex128")
    odd = torch.empty(2, 2, dtype=torch.complex128)
    dist.group.WORLD.allgather([[torch.empty_like(odd) for _ in range(SIZE)]], [odd]).wait()  # moved as bytes
    weight = torch.nn.Parameter(torch.ones(3))
    dist.broadcast(weight.data, 0)
    scalar = torch.tensor(float(RANK))
    dist.all_reduce(scalar)
    assert scalar.item() == sum(range(SIZE))


def functional():
    """torch 2's collectives that give new tensors reach the process group by another way, C++."""
    if not hasattr(torch, "compile"):
        return
    import torch.distributed._functional_collectives as collectives
    found = collectives.all_reduce(data(10), "sum", dist.group.WORLD)
    same([found + 0], [reduced("SUM", all_data(10, torch.float32))], "functional all_reduce")
    found = collectives.all_gather_tensor(data(10), 0, dist.group.WORLD)
    same([found + 0], [torch.cat(all_data(10, torch.float32))], "functional all_gather_tensor")


def ddp():
    """The same numbers as gloo's DistributedDataParallel, within roundings, and the same on every rank."""
    def train(group, **options):
        torch.manual_seed(RANK)  # DDP starts from rank 0's weights
        layers = [torch.nn.Linear(20, 300), torch.nn.ReLU(), torch.nn.BatchNorm1d(300), torch.nn.Linear(300, 10)]
        layers[0].idle = torch.nn.Parameter(torch.zeros(3)) if options else None
        model = torch.nn.Sequential(*layers, *(torch.nn.Linear(10, 10) for _ in range(12)), torch.nn.Linear(10, 1))
        wrapped = torch.nn.parallel.DistributedDataParallel(model, process_group=group, bucket_cap_mb=0.0001, **options)
        optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.01, momentum=0.9)
        for step in range(3):
            optimizer.zero_grad()
            wrapped(data(160, of=RANK + step, shape=(8, 20))).square().mean().backward()
            optimizer.step()
        return torch.cat([one.detach().flatten() for name, one in model.named_parameters() if "idle" not in name])

    dist._DEFAULT_FIRST_BUCKET_BYTES = 64  # many buckets
    mine, theirs = train(None), train(gloo())
    assert torch.equal(mine, train(None, find_unused_parameters=True))  # whose work C++ keeps while others come and go
    assert torch.allclose(mine, theirs, rtol=1e-3, atol=1e-5), (mine - theirs).abs().max()
    everybody = [torch.empty_like(mine) for _ in range(SIZE)]
    dist.all_gather(everybody, mine)
    assert all(torch.equal(one, mine) for one in everybody)
