"""ibv_devices, ibv_devinfo and ibv_asyncwatch: an unmodified program lists exactly the devices of its place."""

from __future__ import annotations

import argparse
import re
import sys
import time

from harness.pair import require
from harness.processes import Child, run
from harness.report import Report
from harness.world import Place, World, add_arguments, check_parts

_LIMIT_S = 20.0


def expected_devices(world: World) -> list[str]:
    """What a process sees: the default device, or one device per port of its node of mesh:3."""
    return ["rdma_lo"] if world.place == "default" else ["rdma_en2", "rdma_en3"]


def list_devices(world: World, place: Place) -> str:
    """ibv_devices prints a header of two lines, then `name guid`."""
    require("ibv_devices")
    done = run(place.command("ibv_devices"), place.env, _LIMIT_S)
    assert done.ok, done.describe()
    rows = [line.split() for line in done.output.splitlines()[2:] if line.strip()]
    names = [row[0] for row in rows]
    assert names == expected_devices(world), f"devices {names}, expected {expected_devices(world)}\n{done.describe()}"
    guids = [row[1] for row in rows]
    assert all(re.fullmatch("[0-9a-f]{16}", guid) and int(guid, 16) for guid in guids), f"GUIDs {guids}"
    assert len(set(guids)) == len(guids), f"two devices have one GUID: {guids}"
    return " ".join(names)


def describe_devices(world: World, place: Place) -> str:
    """ibv_devinfo -v: one active port per device, RoCE GIDs, and the limits a program reads."""
    require("ibv_devinfo")
    done = run(place.command("ibv_devinfo", "-v"), place.env, _LIMIT_S)
    assert done.ok, done.describe()
    blocks = re.split(r"(?m)^hca_id:\s*", done.output)[1:]
    names = [block.split()[0] for block in blocks]
    assert names == expected_devices(world), f"devices {names}\n{done.describe()}"
    wanted = {
        "transport": "InfiniBand (0)", "phys_port_cnt": "1", "state": "PORT_ACTIVE (4)", "active_mtu": "4096 (5)",
        "port_lid": "0", "link_layer": "Ethernet", "vendor_id": "0xffffff", "atomic_cap": "ATOMIC_HCA (1)",
        "max_qp_wr": "16384", "gid_tbl_len": "8", "max_msg_sz": "0x40000000",
    }
    for block in blocks:
        fields = dict(re.findall(r"(?m)^\s*(\w+):\s+(.+?)\s*$", block))
        wrong = {key: fields.get(key) for key, value in wanted.items() if fields.get(key) != value}
        assert not wrong, f"{block.split()[0]}: {wrong}, expected {wanted}\n{block}"
        gids = re.findall(r"GID\[\s*(\d+)\]:\s+(\S+)", block)
        assert [number for number, _ in gids] == ["0", "1"], f"GID table {gids}"
        assert gids[0][1].startswith("fe80:"), f"GID 0 is {gids[0][1]}, expected a link-local one"
        assert gids[1][1].startswith("::ffff:127."), f"GID 1 is {gids[1][1]}, expected an IPv4-mapped 127.x.y.z"
        assert block.count("RoCE v2") == 2, f"GID types are not RoCE v2:\n{block}"
    return f"{len(blocks)} device(s), ports active"


def watch_events(place: Place) -> str:
    """ibv_asyncwatch starts, names its device and waits."""
    require("ibv_asyncwatch")
    watcher = Child(place.command("stdbuf", "-o0", "ibv_asyncwatch"), place.env)
    deadline = time.monotonic() + _LIMIT_S
    while "async event FD" not in watcher.output() and not watcher.has_ended and time.monotonic() < deadline:
        watcher.pause(0.01)
    is_waiting = not watcher.has_ended
    watcher.kill()
    assert is_waiting and "async event FD" in watcher.output(), f"ibv_asyncwatch did not start:\n{watcher.output()}"
    return watcher.output().strip().splitlines()[0]


def open_by_name(place: Place) -> str:
    """-d selects a device; an unknown one is refused with a message, not with a crash."""
    require("ibv_devinfo")
    good = run(place.command("ibv_devinfo", "-d", place.device), place.env, _LIMIT_S)
    assert good.ok, good.describe()
    bad = run(place.command("ibv_devinfo", "-d", "no_such_device"), place.env, _LIMIT_S)
    assert bad.returncode > 0 and not bad.timed_out, bad.describe()
    return place.device


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    arguments = parser.parse_args()
    check_parts(arguments)
    report = Report(f"device tools, {arguments.place}", arguments.only)
    with World(arguments.lib, arguments.ringbolt, arguments.place) as world:
        place = world.client
        report.case("ibv_devices", lambda: list_devices(world, place))
        report.case("ibv_devinfo -v", lambda: describe_devices(world, place))
        report.case("ibv_devinfo -d", lambda: open_by_name(place))
        report.case("nothing left behind", lambda: nothing_left(world))
        report.case("ibv_asyncwatch", lambda: watch_events(place))
        report.case("nothing but a killed slot left behind", lambda: nothing_left(world, slots_may_stay=True))
        report.case("the next program clears it away", lambda: open_by_name(place) and nothing_left(world))
    return report.finish()


def nothing_left(world: World, slots_may_stay: bool = False) -> str:
    """No process, slot or shared memory file remains of what ran before."""
    left = world.leftovers(slots_may_stay)
    assert not left, "\n".join(left)
    return ""


if __name__ == "__main__":
    sys.exit(main())
