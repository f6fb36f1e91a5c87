"""What no ready-made program asks of a peer: immediate data, empty messages, each kind of refusal, a peer that is gone.

    probes.py DEVICE GID_INDEX PORT             waits for the other end
    probes.py DEVICE GID_INDEX PORT ADDRESS     asks; prints a line per probe; exit status 1 if one went wrong

Runs over whatever verbs library the search path gives, through rdma-core's pyverbs. Each probe has its own queue pair.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import socket
import sys
import time
from typing import Any, Callable, Sequence

import pyverbs.enums as e
from pyverbs.addr import GID, AH, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.wr import SGE, RecvWR, SendWR

_MEMORY_BYTES = 16384
_ALL = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC)
_LIMIT_S = 20.0
_QKEY = 0x11223344
_GRH_BYTES = 40
# Statuses of completions (enum ibv_wc_status).
_OK, _LENGTH, _LOCAL, _FLUSHED, _INVALID, _ACCESS, _OPERATION, _RETRY, _RNR = 0, 1, 2, 5, 9, 10, 11, 12, 13


def pattern(seed: int, length: int) -> bytes:
    """Bytes that depend on their position, so that a shift or a repetition shows."""
    return bytes((seed + 7 * index + (index >> 8)) & 0xFF for index in range(length))


class End:
    """One queue pair with its memory: region `open` for everybody, region `closed` for nobody else."""

    def __init__(self, context: Context, pd: PD, gid_index: int, kind: int) -> None:
        self.gid_index = gid_index
        self.kind = kind
        self.pd = pd
        self.open = MR(pd, _MEMORY_BYTES, _ALL)
        self.closed = MR(pd, _MEMORY_BYTES, e.IBV_ACCESS_LOCAL_WRITE)
        self.cq = CQ(context, 64)
        attributes = QPInitAttr(qp_type=kind, scq=self.cq, rcq=self.cq, sq_sig_all=1, cap=QPCap(16, 16, 4, 4, 32))
        self.qp = QP(pd, attributes)
        self.gid = context.query_gid(1, gid_index).gid

    def about(self) -> dict[str, Any]:
        return {"qpn": self.qp.qp_num, "gid": self.gid, "address": self.open.buf, "key": self.open.rkey,
                "closed": self.closed.buf, "closed_key": self.closed.rkey}

    def connect(self, peer: dict[str, Any]) -> None:
        """Moves the queue pair to RTS."""
        attributes = QPAttr(port_num=1)
        attributes.sq_psn = attributes.rq_psn = 0xFFFFF0  # wraps during the first probes that send more than 16 packets
        if self.kind == e.IBV_QPT_UD:
            attributes.qkey = _QKEY
            self.qp.to_rts(attributes)
            return
        attributes.ah_attr = self.route(peer)
        attributes.qp_access_flags = _ALL
        attributes.dest_qp_num = peer["qpn"]
        attributes.path_mtu = e.IBV_MTU_1024
        attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 4
        attributes.min_rnr_timer = 12
        attributes.timeout, attributes.retry_cnt, attributes.rnr_retry = 16, 2, 1
        self.qp.to_rts(attributes)

    def route(self, peer: dict[str, Any]) -> AHAttr:
        return AHAttr(port_num=1, is_global=1,
                      gr=GlobalRoute(dgid=GID(peer["gid"]), sgid_index=self.gid_index, hop_limit=64))

    def receive(self, length: int) -> None:
        self.qp.post_recv(RecvWR(1, 1, [SGE(self.open.buf, length, self.open.lkey)]))

    def completions(self, count: int, limit_s: float) -> list[dict[str, int]]:
        """Up to `count` completions, as soon as they are there."""
        found: list[dict[str, int]] = []
        give_up = time.monotonic() + limit_s
        while len(found) < count and time.monotonic() < give_up:
            for wc in self.cq.poll(count - len(found))[1]:
                found.append({"status": wc.status, "opcode": wc.opcode, "length": wc.byte_len, "source": wc.src_qp,
                              "flags": wc.wc_flags, "immediate": wc.imm_data})
        return found

    def close(self) -> None:
        for part in (self.qp, self.cq, self.open, self.closed):
            part.close()


@dataclasses.dataclass(frozen=True)
class Probe:
    """One question. `ask` posts at the asking end; the other end has posted receives of the given lengths.

    statuses, far_statuses: what completions may say, at the asking end and at the other; an empty tuple: there is none.
    """

    name: str
    ask: Callable[[End, dict[str, Any]], None]
    statuses: tuple[int, ...] = (_OK,)
    far_statuses: tuple[int, ...] = ()
    receives: tuple[int, ...] = ()
    verify: Callable[[End, dict[str, Any]], str] = lambda end, answer: ""
    kind: int = e.IBV_QPT_RC
    is_peer_gone: bool = False
    may_be_refused: bool = False  # ibv_post_send may say EINVAL


def _post(end: End, opcode: int, length: int, address: int = 0, key: int = 0, immediate: int = 0) -> None:
    """Posts one operation; its bytes come from two pieces of odd length where there are enough."""
    data = pattern(3, length)
    end.open.write(data, length)
    cut = length // 3 | 1 if length > 3 else length
    pieces = [SGE(end.open.buf, cut, end.open.lkey)]
    if cut < length:
        pieces.append(SGE(end.open.buf + cut, length - cut, end.open.lkey))
    request = SendWR(7, opcode, len(pieces), immediate, pieces)
    if opcode in (e.IBV_WR_RDMA_WRITE, e.IBV_WR_RDMA_WRITE_WITH_IMM, e.IBV_WR_RDMA_READ):
        request.set_wr_rdma(key, address)
    end.qp.post_send(request)


def _write(end: End, peer: dict[str, Any], length: int, region: str = "", offset: int = 0, key_change: int = 0) -> None:
    address, key = (peer["closed"], peer["closed_key"]) if region == "closed" else (peer["address"], peer["key"])
    _post(end, e.IBV_WR_RDMA_WRITE, length, address + offset, key ^ key_change)


def _write_immediate(end: End, peer: dict[str, Any], length: int) -> None:
    _post(end, e.IBV_WR_RDMA_WRITE_WITH_IMM, length, peer["address"], peer["key"], 0x01020304)


def _send(end: End, _: dict[str, Any], length: int, immediate: int = 0) -> None:
    _post(end, e.IBV_WR_SEND_WITH_IMM if immediate else e.IBV_WR_SEND, length, immediate=immediate)


def _send_inline(end: End, _: dict[str, Any]) -> None:
    end.open.write(pattern(3, 20), 20)
    end.qp.post_send(SendWR(7, e.IBV_WR_SEND, 1, 0, [SGE(end.open.buf, 20, 0)], e.IBV_SEND_INLINE))
    end.open.write(bytes(20), 20)


def _read(end: End, peer: dict[str, Any], length: int, offset: int = 0, key_change: int = 0) -> None:
    request = SendWR(7, e.IBV_WR_RDMA_READ, 1, 0, [SGE(end.open.buf, length, end.open.lkey)])
    request.set_wr_rdma(peer["key"] ^ key_change, peer["address"] + offset)
    end.qp.post_send(request)


def _atomic(end: End, peer: dict[str, Any], opcode: int, compare_or_add: int, swap: int = 0, offset: int = 8,
            key_change: int = 0) -> None:
    request = SendWR(7, opcode, 1, 0, [SGE(end.open.buf, 8, end.open.lkey)])
    request.set_wr_atomic(peer["key"] ^ key_change, peer["address"] + offset, compare_or_add, swap)
    end.qp.post_send(request)


def _datagram(end: End, peer: dict[str, Any], length: int, immediate: int = 0) -> None:
    end.open.write(pattern(3, length), length)
    opcode = e.IBV_WR_SEND_WITH_IMM if immediate else e.IBV_WR_SEND
    request = SendWR(7, opcode, 1, immediate, [SGE(end.open.buf, length, end.open.lkey)])
    request.set_wr_ud(AH(end.pd, attr=end.route(peer)), peer["qpn"], _QKEY)
    end.qp.post_send(request)


def _arrived(length: int, _: End, answer: dict[str, Any]) -> str:
    """The other end's memory starts with what was sent or written."""
    return "" if bytes.fromhex(answer["memory"])[:length] == pattern(3, length) else "the other end has other bytes"


def _received(length: int, immediate: int, end: End, answer: dict[str, Any]) -> str:
    one = answer["completions"][0]
    if one["length"] != length:
        return f"the receive tells of {one['length']} bytes"
    if immediate and (not one["flags"] & e.IBV_WC_WITH_IMM or one["immediate"] != immediate):
        return f"the receive tells of flags {one['flags']:#x} and immediate data {one['immediate']:#x}"
    return _arrived(length, end, answer)


def _fetched(length: int, offset: int, end: End, _: dict[str, Any]) -> str:
    """Our memory holds a piece of the other end's, which was filled with pattern 5."""
    expected = pattern(5, _MEMORY_BYTES)[offset:offset + length]
    return "" if end.open.read(length, 0) == expected else "other bytes were read"


def _original(expected_after: int | None, end: End, answer: dict[str, Any]) -> str:
    """An atomic brought the value back that was there, and left the expected one."""
    before = int.from_bytes(pattern(5, _MEMORY_BYTES)[8:16], sys.byteorder)
    fetched = int.from_bytes(end.open.read(8, 0), sys.byteorder)
    after = int.from_bytes(bytes.fromhex(answer["memory"])[8:16], sys.byteorder)
    if fetched != before:
        return f"fetched {fetched:#x}, there was {before:#x}"
    wanted = before if expected_after is None else expected_after
    return "" if after == wanted else f"left {after:#x} instead of {wanted:#x}"


def _datagram_arrived(length: int, immediate: int, _: End, answer: dict[str, Any]) -> str:
    one = answer["completions"][0]
    memory = bytes.fromhex(answer["memory"])
    if one["length"] != length + _GRH_BYTES or not one["flags"] & e.IBV_WC_GRH:
        return f"the receive tells of {one['length']} bytes, flags {one['flags']:#x}"
    if one["source"] != answer["asker_qpn"]:
        return f"the receive tells of source QP {one['source']:#x}"
    if memory[0] >> 4 != 6 and memory[20] != 0x45:
        return f"the 40 bytes before the data are no IP header: {memory[:_GRH_BYTES].hex()}"
    if immediate and one["immediate"] != immediate:
        return f"immediate data {one['immediate']:#x}"
    return "" if memory[_GRH_BYTES:_GRH_BYTES + length] == pattern(3, length) else "other bytes arrived"


def probes() -> Sequence[Probe]:
    """The list; both ends have the same."""
    before = int.from_bytes(pattern(5, _MEMORY_BYTES)[8:16], sys.byteorder)
    mask = (1 << 64) - 1
    p = functools.partial
    found = [Probe(f"SEND of {size} bytes", p(_send, length=size), far_statuses=(_OK,), receives=(_MEMORY_BYTES,),
                   verify=p(_received, size, 0)) for size in (0, 1, 1023, 1024, 1025, 9001)]
    found += [Probe(f"WRITE of {size} bytes", p(_write, length=size), verify=p(_arrived, size))
              for size in (0, 1, 1025, 9001)]
    found += [Probe(f"READ of {size} bytes", p(_read, length=size, offset=17), verify=p(_fetched, size, 17))
              for size in (0, 1, 1024, 1025, 9001)]
    found += [
        Probe("SEND with immediate data", p(_send, length=5, immediate=0x01020304), far_statuses=(_OK,),
              receives=(100,), verify=p(_received, 5, 0x01020304)),
        Probe("WRITE with immediate data", p(_write_immediate, length=3001), far_statuses=(_OK,), receives=(0,),
              verify=p(_received, 3001, 0x01020304)),
        Probe("SEND inline", _send_inline, far_statuses=(_OK,), receives=(100,), verify=p(_received, 20, 0)),
        Probe("FETCH AND ADD", p(_atomic, opcode=e.IBV_WR_ATOMIC_FETCH_AND_ADD, compare_or_add=0x123456789),
              verify=p(_original, (before + 0x123456789) & mask)),
        Probe("COMPARE AND SWAP that hits",
              p(_atomic, opcode=e.IBV_WR_ATOMIC_CMP_AND_SWP, compare_or_add=before, swap=99), verify=p(_original, 99)),
        Probe("COMPARE AND SWAP that misses", p(_atomic, opcode=e.IBV_WR_ATOMIC_CMP_AND_SWP, compare_or_add=5, swap=99),
              verify=p(_original, None)),
        Probe("WRITE of nothing with a wrong key", p(_write, length=0, key_change=0xFFFFFF00)),
        Probe("WRITE with a wrong key", p(_write, length=100, key_change=0xFFFFFF00), (_ACCESS,)),
        Probe("WRITE past the end", p(_write, length=100, offset=_MEMORY_BYTES - 99), (_ACCESS,)),
        Probe("WRITE to a region without remote access", p(_write, length=100, region="closed"), (_ACCESS,)),
        Probe("READ with a wrong key", p(_read, length=100, key_change=0xFFFFFF00), (_ACCESS,)),
        Probe("READ past the end", p(_read, length=5000, offset=_MEMORY_BYTES - 4999), (_ACCESS,)),
        Probe("atomic with a wrong key",
              p(_atomic, opcode=e.IBV_WR_ATOMIC_FETCH_AND_ADD, compare_or_add=1, key_change=0xFFFFFF00), (_ACCESS,)),
        Probe("atomic at an odd address", p(_atomic, opcode=e.IBV_WR_ATOMIC_FETCH_AND_ADD, compare_or_add=1, offset=12),
              (_INVALID,), may_be_refused=True),
        Probe("SEND longer than the receive", p(_send, length=3000), (_INVALID, _OPERATION),
              (_LENGTH, _LOCAL, _INVALID, _FLUSHED), receives=(2999,)),
        Probe("SEND without a receive", p(_send, length=10), (_RNR,)),
        Probe("SEND to a queue pair that is gone", p(_send, length=10), (_RETRY,), is_peer_gone=True),
        Probe("UC SEND", p(_send, length=1000), far_statuses=(_OK,), receives=(_MEMORY_BYTES,), kind=e.IBV_QPT_UC,
              verify=p(_received, 1000, 0)),
        Probe("UC SEND in pieces", p(_send, length=5000, immediate=9), far_statuses=(_OK,), receives=(_MEMORY_BYTES,),
              kind=e.IBV_QPT_UC, verify=p(_received, 5000, 9)),
        Probe("UC WRITE with immediate data", p(_write_immediate, length=3001), far_statuses=(_OK,), receives=(0,),
              kind=e.IBV_QPT_UC, verify=p(_received, 3001, 0x01020304)),
        Probe("UD SEND", p(_datagram, length=1024), far_statuses=(_OK,), receives=(_MEMORY_BYTES,), kind=e.IBV_QPT_UD,
              verify=p(_datagram_arrived, 1024, 0)),
        Probe("UD SEND with immediate data", p(_datagram, length=3, immediate=77), far_statuses=(_OK,),
              receives=(_MEMORY_BYTES,), kind=e.IBV_QPT_UD, verify=p(_datagram_arrived, 3, 77)),
    ]
    return found


class Line:
    """Messages of one JSON value per line over TCP."""

    def __init__(self, stream: socket.socket) -> None:
        stream.settimeout(2 * _LIMIT_S)
        self._file = stream.makefile("rw")

    def tell(self, value: Any) -> None:
        self._file.write(json.dumps(value) + "\n")
        self._file.flush()

    def hear(self) -> Any:
        line = self._file.readline()
        if not line:
            raise SystemExit("the other end has gone")
        return json.loads(line)


def answer(line: Line, make: Callable[[int], End]) -> None:
    """The other end: does for each probe what is asked of it, and tells what it saw."""
    while (name := line.hear()) != "enough":
        probe = next(probe for probe in probes() if probe.name == name)
        end = make(probe.kind)
        end.open.write(pattern(5, _MEMORY_BYTES), _MEMORY_BYTES)
        line.tell(end.about())
        peer = line.hear()
        end.connect(peer)
        for length in probe.receives:
            end.receive(length)
        if probe.is_peer_gone:
            end.close()
        line.tell("ready")
        line.hear()
        if probe.is_peer_gone:
            line.tell({"completions": [], "memory": "", "asker_qpn": peer["qpn"]})
            continue
        seen = end.completions(1, 5.0 if probe.far_statuses else 0.0)
        line.tell({"completions": seen, "memory": end.open.read(_MEMORY_BYTES, 0).hex(), "asker_qpn": peer["qpn"]})
        end.close()


def ask(line: Line, probe: Probe, make: Callable[[int], End]) -> str:
    """The asking end of one probe; what went wrong, or nothing."""
    line.tell(probe.name)
    end = make(probe.kind)
    peer = line.hear()
    line.tell(end.about())
    end.connect(peer)
    line.hear()
    try:
        probe.ask(end, peer)
        ours = end.completions(1, _LIMIT_S)
    except PyverbsRDMAError as error:
        ours = [{"status": probe.statuses[0] if probe.may_be_refused else -error.error_code}]
    line.tell("done")
    theirs = line.hear()
    try:
        return (_wrong("our completion", ours, probe.statuses)
                or _wrong("theirs", theirs["completions"], probe.far_statuses) or probe.verify(end, theirs))
    finally:
        end.close()


def _wrong(whose: str, completions: list[dict[str, int]], allowed: tuple[int, ...]) -> str:
    said = [one["status"] for one in completions]
    if not allowed:
        return f"{whose}: unexpected, status {said[0]}" if said else ""
    return "" if said and said[0] in allowed else f"{whose}: status {said[0] if said else 'none'}, expected {allowed}"


def main() -> int:
    device, gid_index, port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    context = Context(name=device)
    pd = PD(context)

    def make(kind: int) -> End:
        return End(context, pd, gid_index, kind)

    if len(sys.argv) == 4:
        with socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True) as server:
            server.settimeout(2 * _LIMIT_S)
            with server.accept()[0] as stream:
                answer(Line(stream), make)
        return 0
    failures = 0
    with socket.create_connection((sys.argv[4], port), _LIMIT_S) as stream:
        line = Line(stream)
        for probe in probes():
            problem = ask(line, probe, make)
            failures += bool(problem)
            print(f"{'FAIL' if problem else 'ok  '} {probe.name}{': ' if problem else ''}{problem}", flush=True)
        line.tell("enough")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
