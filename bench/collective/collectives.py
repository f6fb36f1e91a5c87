"""Which collectives are compared with whom: C1 to C9 of the performance goals."""

from dataclasses import dataclass

from cases import KIB, MIB, Case, Rival

OURS = "ringbolt"
OURS_MESH = "ringbolt-mesh4"
OURS_RING = "ringbolt-ring4"
# The same processes, asked for float32 instead of the case's type.
OURS_FLOAT32 = "ringbolt/float32"

OPEN_MPI_OR_MPICH = ("ompi", "mpich")


@dataclass(frozen=True)
class Collective(Case):
    """`size` is in bytes of each rank's input. A rival's goal is against that rival, these against the fastest MPI of
    the run, which may be another in every case."""
    best_goal: float | None = None
    best_floor: float | None = None


def _all_reduce(number, size_text, size, goal, in_place_goal):
    """Out of place and in place, against both MPIs. We must not be slower than the best of them from 4 KiB up."""
    rivals = (Rival("ompi"), Rival("ompi-nosc"), Rival("mpich"))
    # A group may be used by several threads, too; and no call over verbs is faster than a bare exchange.
    rivals += (Rival("ompi-threads"), Rival("verbs")) if size < 4 * KIB else ()
    floor = 1 if size >= 4 * KIB else None
    factor = 4 if size >= 16 * MIB else 1
    return (Collective(f"C{number}", f"all_reduce float32 {size_text}", "all_reduce/float32/out", size, rivals,
                       block_factor=factor, best_goal=goal, best_floor=floor),
            Collective(f"C{number}-in", f"all_reduce float32 {size_text}, in place", "all_reduce/float32/in", size,
                       rivals, block_factor=factor, best_goal=in_place_goal, best_floor=floor))


def _half(kind, size_text, size):
    """16-bit types against float32 of as many bytes, which is as far as MPI can be compared with at all."""
    factor = 4 if size >= 16 * MIB else 1
    return Collective(f"C6-{kind}-{size_text.replace(' ', '')[:-2]}", f"all_reduce {kind} {size_text}",
                      f"all_reduce/{kind}/out", size, (Rival(OURS_FLOAT32, 0.85, 0.85),), block_factor=factor)


def _all_gather(size_text, size):
    return Collective(f"C7-{size_text.replace(' ', '')[:-2]}", f"all_gather {size_text} per rank",
                      "all_gather/float32/out", size, (Rival("ompi"), Rival("ompi-nosc"), Rival("mpich")),
                      best_goal=1.5)


def _crowded(name, title, size, ours):
    """Four ranks on two cores: twice as fast as Open MPI whose ranks yield, never half as fast, and no collapse."""
    return Collective(f"C9-{name}", f"all_reduce float32 {title}, 4 ranks on 2 cores", "all_reduce/float32/out", size,
                      (Rival("ompi-yield4", 2, 0.5), Rival("mpich4")), ours=ours, worst_p99_ms=20, block_factor=6)


COLLECTIVES = (
    *_all_reduce(1, "64 B", 64, 1.4, None),
    *_all_reduce(2, "4 KiB", 4 * KIB, 2.4, None),
    *_all_reduce(3, "64 KiB", 64 * KIB, 1.5, 2.4),
    *_all_reduce(4, "1 MiB", MIB, 1.9, 3),
    *_all_reduce(5, "16 MiB", 16 * MIB, 1.5, 2.8),
    _half("bfloat16", "1 MiB", MIB),
    _half("bfloat16", "16 MiB", 16 * MIB),
    _half("float16", "1 MiB", MIB),
    _half("float16", "16 MiB", 16 * MIB),
    _all_gather("4 KiB", 4 * KIB),
    _all_gather("64 KiB", 64 * KIB),
    _all_gather("1 MiB", MIB),
    Collective("C8", "barrier", "barrier", 0, (Rival("ompi", 1.5), Rival("mpich"), Rival("ompi-threads"), Rival("verbs")),
               is_touched=False),
    _crowded("64K", "64 KiB, mesh", 64 * KIB, OURS_MESH),
    _crowded("1M", "1 MiB, mesh", MIB, OURS_MESH),
    _crowded("64K-ring", "64 KiB, ring", 64 * KIB, OURS_RING),
    _crowded("1M-ring", "1 MiB, ring", MIB, OURS_RING),
)


def with_best(case, result):
    """The result of summarize() with one row more in each class: the fastest MPI, and what we aim at against it."""
    for entry in result["classes"].values():
        mpis = {name: peer for name, peer in entry["peers"].items()
                if name.startswith(OPEN_MPI_OR_MPICH) and not name.endswith("-threads")}
        if mpis and (case.best_goal is not None or case.best_floor is not None):
            name = min(mpis, key=lambda one: mpis[one]["median"])
            entry["peers"][f"best: {name}"] = dict(mpis[name], goal=case.best_goal, floor=case.best_floor)
    return result
