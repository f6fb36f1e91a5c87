"""libfabric: fi_info lists our ports under the verbs provider; fi_pingpong over datagram endpoints as far as it gets."""

from __future__ import annotations

import argparse
import functools
import pathlib
import re
import sys
import tempfile

from harness.pair import PairResult, require, run_pair
from harness.processes import Child, run
from harness.report import Report, Skip
from harness.world import World, add_arguments, check_parts

_LIMIT_S = 40.0


def list_endpoints(world: World) -> str:
    """fi_info -p verbs shows a datagram endpoint on the device."""
    require("fi_info")
    done = run(world.client.command("fi_info", "-p", "verbs"), world.client.env, _LIMIT_S)
    assert done.ok, done.describe()
    assert world.client.device in done.output, f"the device is not listed:\n{done.describe()}"
    kinds = sorted(set(re.findall(r"type: (FI_EP_\w+)", done.output)))
    return " ".join(kinds)


def ping_pong(world: World, size: str) -> str:
    """fi_pingpong with data check (-c) over the verbs provider's datagram endpoint.

    It opens an event queue before any endpoint, of whatever type, and the verbs provider makes that of an rdma_cm event
    channel: the stock librdmacm opens /dev/infiniband/rdma_cm for it. Without that device the program has to say so.
    """
    options = ["fi_pingpong", "-p", "verbs", "-e", "dgram", "-c", "-I", "200", "-S", size]
    result = run_pair(world, [*options, "-d", world.server.device + "-dgram"],
                      [*options, "-d", world.client.device + "-dgram"], _LIMIT_S, port_options=("-B", "-P"))
    problems = world.leftovers()
    if "fi_eq_open" in result.server.output and result.server.returncode > 0 and not problems:
        raise Skip("the program opens an event queue, for which the stock librdmacm needs the kernel's rdma_cm: "
                   + result.server.output.strip().splitlines()[-1])
    problems += result.problems()
    assert not problems, "\n".join(problems)
    return result.client.output.strip().splitlines()[-1]


def own_ping_pong(world: World, program: pathlib.Path) -> str:
    """Our own ping-pong over the same datagram endpoint: what fi_pingpong would show, without an event queue."""
    with tempfile.TemporaryDirectory() as folder:
        sides = []
        for place, role in ((world.server, "pong"), (world.client, "ping")):
            # The provider's name server would listen on a fixed port.
            command = place.command("env", "FI_VERBS_DGRAM_USE_NAME_SERVER=0", str(program), place.device + "-dgram", folder, role)
            sides.append(Child(command, place.env))
        pong, ping = (side.wait(_LIMIT_S) for side in sides)
    problems = PairResult(pong, ping).problems() + world.leftovers()
    assert not problems, "\n".join(problems)
    assert all("every byte checked" in side.output for side in (ping, pong)), ping.describe()
    return ping.output.splitlines()[0].strip()


def message_endpoint() -> str:
    raise Skip("message endpoints connect through rdma_cm: interop.rdmacm runs them")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--program", type=pathlib.Path, help="the built fabric_dgram")
    arguments = parser.parse_args()
    check_parts(arguments)
    report = Report(f"libfabric, {arguments.place}", arguments.only)
    with World(arguments.lib, arguments.ringbolt, arguments.place) as world:
        report.case("fi_info -p verbs", functools.partial(list_endpoints, world))
        for size in ("1", "64", "1024", "4096"):
            report.case(f"fi_pingpong dgram {size}", functools.partial(ping_pong, world, size))
        report.case("fi_pingpong msg", message_endpoint)
        if arguments.program is None:
            report.skip("fabric_dgram", "not built: libfabric-dev is not installed")
        else:
            report.case("fabric_dgram", functools.partial(own_ping_pong, world, arguments.program.resolve()))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
