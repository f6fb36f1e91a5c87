"""libfabric: fi_info lists our ports under the verbs provider, fi_pingpong runs over datagram endpoints."""

from __future__ import annotations

import argparse
import functools
import re
import sys

from harness.pair import require, run_pair
from harness.processes import run
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
    """fi_pingpong with data check (-c) over the verbs provider's datagram endpoint."""
    options = ["fi_pingpong", "-p", "verbs", "-e", "dgram", "-c", "-I", "200", "-S", size]
    result = run_pair(world, [*options, "-d", world.server.device + "-dgram"],
                      [*options, "-d", world.client.device + "-dgram"], _LIMIT_S, port_option="-B")
    problems = result.problems() + world.leftovers()
    assert not problems, "\n".join(problems)
    return result.client.output.strip().splitlines()[-1]


def message_endpoint() -> str:
    raise Skip("message endpoints connect through rdma_cm; the stock librdmacm only works with the kernel's")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    arguments = parser.parse_args()
    check_parts(arguments)
    report = Report(f"libfabric, {arguments.place}", arguments.only)
    with World(arguments.lib, arguments.ringbolt, arguments.place) as world:
        report.case("fi_info -p verbs", functools.partial(list_endpoints, world))
        for size in ("1", "64", "1024", "4096"):
            report.case(f"fi_pingpong dgram {size}", functools.partial(ping_pong, world, size))
        report.case("fi_pingpong msg", message_endpoint)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
