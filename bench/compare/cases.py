"""What is compared with whom: P1..P10 of the performance goals, NCCL's plugin, and the crowded ring."""

from dataclasses import dataclass, field

KIB = 1024
MIB = 1024 * KIB

OURS = "ringbolt"
OURS_PRIVATE = "ringbolt-private"
OURS_RING = "ringbolt-ring4"
OURS_NCCL = "ringbolt-nccl"


@dataclass(frozen=True)
class Rival:
    """A peer of a case. `goal` is the wanted and `floor` the demanded ratio; 1 means as fast as the peer, 2 means that
    we take half its time (or make twice its rate). None: only reported."""
    peer: str
    goal: float | None = None
    floor: float | None = None


@dataclass(frozen=True)
class Case:
    """One comparison. Latencies are one way (half a round trip) unless the operation has no way back."""
    id: str
    title: str
    operation: str
    size: int
    rivals: tuple
    ours: str = OURS
    is_touched: bool = True  # payload rewritten before, read after every operation
    least_rate: float | None = None  # messages per second that the goals name
    worst_p99_ms: float | None = None
    block_factor: float = 1.0  # blocks longer than usual where an operation is slow
    tags: tuple = field(default=())

    @property
    def is_rate(self):
        return self.operation.startswith("rate")


CASES = (
    Case("P1", "8 B WRITE, memory polled", "write", 8,
         (Rival("ucx-sysv", 1 / 1.5), Rival("ucx_perftest:ucp_put_lat", 1 / 1.5), Rival("tcp", 40))),
    Case("P2", "8 B SEND/RECV", "send", 8,
         (Rival("ucx-sysv", 1 / 1.15, 1 / 1.5), Rival("ucx_perftest:tag_lat", 1 / 1.15, 1 / 1.5), Rival("ompi", 1),
          Rival("mpich", 1.4), Rival("libfabric", 2), Rival("tcp"), Rival("ucx-sysv-threads"), Rival("ompi-threads"),
          Rival("mpich-threads"))),
    Case("P3", "4 KiB SEND", "send", 4 * KIB,
         (Rival("ucx-sysv", 1.1), Rival("ompi"), Rival("ompi-nosc", 2), Rival("mpich"), Rival("tcp"))),
    Case("P4", "64 KiB SEND", "send", 64 * KIB,
         (Rival("ucx-sysv", 1.5, 1.2), Rival("ompi", 4, 1.2), Rival("ompi-nosc", None, 1.2), Rival("mpich", 4),
          Rival("tcp", 6))),
    Case("P5", "1 MiB SEND", "send", MIB,
         (Rival("ucx-sysv", 1.15, 1), Rival("ompi", 3.2, 1), Rival("ompi-nosc", None, 1), Rival("mpich"),
          Rival("tcp", 5.5))),
    Case("P6", "16 MiB SEND", "send", 16 * MIB,
         (Rival("ucx-sysv", 1.05), Rival("ompi", 1.05), Rival("ompi-nosc", 1.05), Rival("mpich", 1.05),
          Rival("tcp", 1.05)), block_factor=3),
    Case("P3-still", "4 KiB SEND, payload untouched", "send", 4 * KIB, (Rival("ucx_perftest:tag_lat"),),
         is_touched=False),
    Case("P4-still", "64 KiB SEND, payload untouched", "send", 64 * KIB, (Rival("ucx_perftest:tag_lat"),),
         is_touched=False),
    Case("P5-still", "1 MiB SEND, payload untouched", "send", MIB, (Rival("ucx_perftest:tag_lat"),),
         is_touched=False),
    Case("P7-64K", "64 KiB SEND, private memory", "send", 64 * KIB,
         (Rival("ucx-cma", 2.5, 1), Rival("ompi", 2.5), Rival("mpich", 2.5)), ours=OURS_PRIVATE),
    Case("P7-1M", "1 MiB SEND, private memory", "send", MIB,
         (Rival("ucx-cma", 2.5, 1), Rival("ompi", 2.5), Rival("mpich", 2.5)), ours=OURS_PRIVATE),
    Case("P8-send", "8 B SEND rate", "rate_send", 8,
         (Rival("ucx-sysv"), Rival("ucx_perftest:tag_bw"), Rival("ompi"), Rival("ucx-sysv-threads"),
          Rival("ompi-threads")), least_rate=25e6),
    Case("P8-write", "8 B WRITE rate", "rate_write", 8,
         (Rival("ucx-sysv"), Rival("ucx_perftest:ucp_put_bw"), Rival("ucx-sysv-threads")), least_rate=60e6),
    Case("P9-8", "8 B READ", "read", 8, (Rival("ucx-sysv", 0.95), Rival("ucx-sysv-threads"))),
    Case("P9-4K", "4 KiB READ", "read", 4 * KIB, (Rival("ucx-sysv", 0.95),)),
    Case("P9-64K", "64 KiB READ", "read", 64 * KIB, (Rival("ucx-sysv", 0.95),)),
    Case("P9-1M", "1 MiB READ", "read", MIB, (Rival("ucx-sysv", 0.95),)),
    Case("P10", "8 B fetch-and-add", "fetch_add", 8,
         (Rival("ucx-sysv", 1 / 1.2), Rival("ucx_perftest:ucp_fadd", 1 / 1.2), Rival("ucx-sysv-threads"))),
    Case("N1", "8 B isend to test, NCCL plugin", "send", 8, (Rival("ringbolt-private", 1 / 1.5),),
         ours=OURS_NCCL),
    Case("N2", "4 MiB isend to test, NCCL plugin", "send", 4 * MIB, (Rival("ringbolt-private", 0.9, 0.9),),
         ours=OURS_NCCL),
    Case("C9-8", "8 B ring, 4 ranks on 2 cores", "ring", 8, (Rival("ompi-ring4"), Rival("mpich-ring4")),
         ours=OURS_RING, worst_p99_ms=20, block_factor=6),
    Case("C9-64K", "64 KiB ring, 4 ranks on 2 cores", "ring", 64 * KIB, (Rival("ompi-ring4"), Rival("mpich-ring4")),
         ours=OURS_RING, worst_p99_ms=20, block_factor=6),
)


def select(ids, cases=CASES):
    """Those of `cases` whose id, or part before the dash, is in `ids`; all when `ids` is empty. ValueError for an
    unknown id."""
    if not ids:
        return list(cases)
    known = {case.id for case in cases} | {case.id.split("-")[0] for case in cases}
    unknown = sorted(set(ids) - known)
    if unknown:
        raise ValueError(f"no case {', '.join(unknown)}; there are {', '.join(case.id for case in cases)}")
    return [case for case in cases if case.id in ids or case.id.split("-")[0] in ids]
