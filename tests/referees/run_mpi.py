"""Open MPI 5 and MPICH 5 of PyPI over our device: two ranks, through the UCX and the libfabric that their wheels bring."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import pathlib
import sys

from referee import Place, Report, World, main, peer, prepared, run

_LIMIT_S = 120.0
_UCX = "UCX_TLS={tls},self UCX_NET_DEVICES={device}:1 UCX_LOG_LEVEL=info UCX_RC_VERBS_TIMEOUT=100ms"


@dataclasses.dataclass(frozen=True)
class Way:
    """How an MPI is told to go over our device. `variables` of each rank, `launcher` options of mpiexec."""

    title: str
    variables: str
    launcher: tuple[str, ...]
    evidence: str


def ways(name: str) -> list[Way]:
    """MPICH: without shared memory between ranks of a host. Open MPI: on devices whose names it does not know, too."""
    if name == "mpich":
        local = "MPIR_CVAR_NOLOCAL=1 "
        ucx, ofi = (), ()
        fabric = local + "MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_DEBUG_SUMMARY=1 FI_PROVIDER=verbs;ofi_rxm FI_VERBS_DEVICE_NAME={device}"
        said = "libfabric provider: verbs;ofi_rxm"
    else:
        local = ""
        any_device = ("--mca", "opal_common_ucx_tls", "any", "--mca", "opal_common_ucx_devices", "any")
        common = ("--allow-run-as-root", "--oversubscribe")
        ucx = (*common, "--mca", "pml", "ucx", "--mca", "osc", "ucx", *any_device)
        ofi = (*common, "--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "verbs;ofi_rxm",
               "--mca", "opal_common_ofi_verbose", "10", "--mca", "mtl_base_verbose", "10")
        fabric = "FI_VERBS_DEVICE_NAME={device}"
        said = "mtl:ofi:provider:domain: {device}"
    found = [Way(f"UCX {tls}", local + _UCX.replace("{tls}", tls), ucx, transport + "/{device}:1")
             for tls, transport in (("rc_v", "rc_verbs"), ("ud_v", "ud_verbs"))]
    return [*found, Way("libfabric verbs;ofi_rxm", fabric, ofi, said)]


def ranks(world: World, folder: pathlib.Path, way: Way) -> str:
    """Both ranks end well and have checked their data, and the MPI says that it used our device."""

    def rank(place: Place) -> list[str]:
        variables = way.variables.format(device=place.device).split()
        return ["-n", "1", *place.command("env", *variables, str(folder / "bin" / "python3"), "-B", peer("mpi_peer.py"))]

    argv = [str(folder / "bin" / "mpiexec"), *way.launcher, *rank(world.server), ":", *rank(world.client)]
    environment = dict(world.base_env, PATH=f"{folder / 'bin'}:{world.base_env['PATH']}")
    done = run(argv, environment, _LIMIT_S)
    problems = [] if done.ok else [done.describe()]
    if done.output.count("every byte checked") != 2:
        problems.append(f"not both ranks reached their end:\n{done.describe()}")
    for place in (world.server, world.client):
        if way.evidence.format(device=place.device) not in done.output:
            problems.append(f"nobody says '{way.evidence.format(device=place.device)}':\n{done.describe()}")
    problems += world.leftovers()
    assert not problems, "\n".join(problems)
    return next(line for line in done.output.splitlines() if "every byte checked" in line)


def body(world: World, report: Report, _: argparse.Namespace) -> None:
    for name, title in (("openmpi", "Open MPI"), ("mpich", "MPICH")):
        folder = prepared("setup-python", f"referee-{name}")
        for way in ways(name):
            report.case(f"{title} {way.title}", functools.partial(ranks, world, folder, way))


if __name__ == "__main__":
    sys.exit(main(__doc__, "Open MPI and MPICH", body))
