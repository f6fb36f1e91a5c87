"""Debian's kernel and the modules the guest needs, taken out of its package without installing it."""

from __future__ import annotations

import dataclasses
import lzma
import pathlib
import re
import shutil
import struct
import subprocess
import tarfile
import tempfile
from typing import Iterable

from harness.report import Skip

# What the guest loads, besides what these depend on. crc32_generic is no dependency that the module would tell of, but
# without it rdma_rxe can't add a device (ENOENT).
WANTED = ("virtio_pci", "virtio_console", "virtio_net", "9pnet_virtio", "9p", "crc32_generic", "rdma_rxe", "ib_uverbs",
          "rdma_ucm", "sch_netem", "ifb", "act_mirred", "sch_ingress", "cls_matchall")
# Only modules in these folders are looked at: what is wanted, and all it can depend on.
_FOLDERS = ("kernel/crypto/", "kernel/lib/", "kernel/arch/x86/crypto/", "kernel/net/", "kernel/fs/9p/",
            "kernel/fs/netfs/", "kernel/fs/fscache/", "kernel/fs/configfs/", "kernel/drivers/virtio/",
            "kernel/drivers/char/", "kernel/drivers/net/virtio_net", "kernel/drivers/net/net_failover",
            "kernel/drivers/net/ifb", "kernel/drivers/infiniband/core/", "kernel/drivers/infiniband/sw/rxe/")
_DOWNLOAD_LIMIT_S = 240


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel ready to boot. `modules` are in an order in which they can be loaded."""

    version: str
    image: pathlib.Path
    modules: tuple[pathlib.Path, ...]


def prepared(cache: pathlib.Path) -> Kernel:
    """The kernel in the folder `cache`; fetched with apt (70 MB) the first time. Raises Skip where it can't be had."""
    for folder in sorted(cache.glob("kernel-*")):
        order = (folder / "order").read_text().split()
        if not set(WANTED) <= set(order):  # from before the list has grown
            shutil.rmtree(folder)
            continue
        return Kernel(folder.name.removeprefix("kernel-"), folder / "vmlinux",
                      tuple(folder / f"{name}.ko" for name in order))
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        package = _download(pathlib.Path(scratch))
        _unpack(package, cache)
    return prepared(cache)


def _download(folder: pathlib.Path) -> pathlib.Path:
    for tool in ("apt-get", "apt-cache", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise Skip(f"no {tool}: the guest's kernel comes from Debian's package linux-image-amd64")
    about = _call(["apt-cache", "show", "--no-all-versions", "linux-image-amd64"], folder)
    found = re.search(r"^Depends: (linux-image-\S+)", about, re.MULTILINE)
    if found is None:
        raise Skip("apt knows no linux-image-amd64 (apt-get update?), so there is no kernel for the guest")
    _call(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", found.group(1)], folder)
    return next(folder.glob("linux-image-*.deb"))


def _call(command: list[str], folder: pathlib.Path) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_DOWNLOAD_LIMIT_S,
                              check=False)
    except subprocess.TimeoutExpired:
        raise Skip(f"no kernel for the guest: {' '.join(command)} took more than {_DOWNLOAD_LIMIT_S} s") from None
    if done.returncode != 0:
        raise Skip(f"no kernel for the guest: {' '.join(command)}: {' '.join(done.stderr.split())[-300:]}")
    return done.stdout


def _unpack(package: pathlib.Path, cache: pathlib.Path) -> None:
    """Writes kernel-VERSION/ with vmlinux, the modules and their order."""
    image, version, modules = b"", "", {}
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE) as unpacker:
        with tarfile.open(fileobj=unpacker.stdout, mode="r|") as archive:
            for member in archive:
                path = member.name.removeprefix("./")
                if path.startswith("boot/vmlinuz-"):
                    version = path.removeprefix("boot/vmlinuz-")
                    image = archive.extractfile(member).read()
                elif path.endswith(".ko") and path.split("/", 3)[-1].startswith(_FOLDERS):
                    modules[pathlib.PurePath(path).stem.replace("-", "_")] = archive.extractfile(member).read()
    if unpacker.returncode != 0 or not image:
        raise RuntimeError(f"{package.name}: no kernel image in it (dpkg-deb exit status {unpacker.returncode})")
    order = load_order(WANTED, {name: dependencies(content) for name, content in modules.items()})
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        folder = pathlib.Path(scratch) / "kernel"
        folder.mkdir()
        (folder / "vmlinux").write_bytes(uncompressed(image))
        for name in order:
            (folder / f"{name}.ko").write_bytes(modules[name])
        (folder / "order").write_text("\n".join(order) + "\n")
        folder.rename(cache / f"kernel-{version}")


def dependencies(module: bytes) -> list[str]:
    """The modules that a module names in its section .modinfo."""
    found = re.search(rb"\0depends=([^\0]*)\0", module)
    return [name for name in found.group(1).decode().replace("-", "_").split(",") if name] if found else []


def load_order(wanted: Iterable[str], depends: dict[str, list[str]]) -> list[str]:
    """The wanted modules and all that they need, each after what it needs."""
    order: list[str] = []

    def add(name: str) -> None:
        if name in order:
            return
        if name not in depends:
            raise RuntimeError(f"the kernel's package has no module {name} in the folders that kernel.py looks at")
        for needed in depends[name]:
            add(needed)
        order.append(name)

    for name in wanted:
        add(name)
    return order


def uncompressed(image: bytes) -> bytes:
    """The ELF file in a compressed kernel image: the host unpacks it much faster than an emulated processor would.

    Offset and length: Documentation/x86/boot.rst, payload_offset and payload_length.
    """
    setup_sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    payload = image[start:start + length]
    if not payload.startswith(b"\xfd7zXZ"):
        raise RuntimeError("the kernel image is not packed with xz; teach kernel.py its format")
    return lzma.LZMADecompressor().decompress(payload)
