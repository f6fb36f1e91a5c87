"""NIXL over UCX over our device: two agents of its wheel, one writes and reads the other's memory."""

from __future__ import annotations

import argparse
import functools
import sys

from referee import Place, Report, World, main, peer, prepared, run_peers

_LIMIT_S = 120.0


def transfers(world: World, python: str, tls: str, evidence: str) -> str:
    """The wheel brings its libibverbs under another name, which a search path does not replace: ours is loaded before it."""

    def side(place: Place) -> list[str]:
        environment = [f"LD_PRELOAD={world.lib}/libibverbs.so.1", f"UCX_TLS={tls},self", f"UCX_NET_DEVICES={place.device}:1",
                       "UCX_LOG_LEVEL=info"]
        return ["env", *environment, *place.command(python, "-B", peer("nixl_peer.py"))]

    return run_peers(world, _LIMIT_S, side, evidence)


def body(world: World, report: Report, _: argparse.Namespace) -> None:
    python = str(prepared("setup-python", "referee-nixl") / "bin" / "python3")
    for tls, evidence in (("rc_v", "rma(rc_verbs/DEVICE:1"), ("ud_v", "ud_verbs/DEVICE:1")):
        report.case(f"two agents {tls}", functools.partial(transfers, world, python, tls, evidence))


if __name__ == "__main__":
    sys.exit(main(__doc__, "NIXL", body))
