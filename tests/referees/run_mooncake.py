"""Mooncake's transfer engine over our device: two engines of its wheel for machines without CUDA, over its rdma protocol."""

from __future__ import annotations

import argparse
import functools
import sys

from referee import Place, Report, World, main, peer, prepared, run_peers

_LIMIT_S = 120.0


def transfers(world: World, python: str) -> str:
    """Mooncake takes the device and the address by which others reach it."""

    def side(place: Place) -> list[str]:
        return place.command("env", "MC_LOG_LEVEL=INFO", python, "-B", peer("mooncake_peer.py"), place.device,
                             place.side_address or place.address)

    return run_peers(world, _LIMIT_S, side, "RDMA device: DEVICE,")


def body(world: World, report: Report, _: argparse.Namespace) -> None:
    python = str(prepared("setup-python", "referee-mooncake") / "bin" / "python3")
    report.case("two engines", functools.partial(transfers, world, python))


if __name__ == "__main__":
    sys.exit(main(__doc__, "Mooncake", body))
