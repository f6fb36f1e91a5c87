#!/usr/bin/env python3
"""Checks who includes whom. Folders are layers; `<infiniband/verbs.h>` is the waist between the two halves.

    layers.py ROOT        prints each forbidden include as FILE:LINE, exit 1 if there is one
    layers.py --self-test the rules against small trees made on the spot
"""

import pathlib
import re
import sys
import tempfile
import unittest

# What each layer may include of ours, besides itself. Below the waist a layer sees only what lies beneath it.
ALLOWED = {
    "src/base": set(),
    # What a process does with its queue pairs, in a file; its readers are tools.
    "src/trace": {"base"},
    "src/wire": {"base"},
    "src/transport": {"base", "wire"},
    "src/cm": {"base", "wire"},
    "src/fault": {"base"},
    "src/shuffle": {"base", "fault"},
    "src/profile": {"base"},
    "src/cluster": {"base"},
    "src/link": {"base", "wire", "fault", "trace"},
    "src/device": {"base", "wire", "transport", "fault", "shuffle", "profile", "cluster", "link", "trace"},
    "src/sanitizer": {"base", "profile", "trace"},
    "src/abi": {"base", "wire", "transport", "fault", "shuffle", "profile", "cluster", "link", "device", "sanitizer", "trace"},
    # Above the waist: graphs, bounds and plans are pure; they know neither files nor verbs.
    "src/fabric": {"base"},
    "src/collective": {"base", "fabric"},
    # Any verbs library may be underneath, chosen at run time.
    "src/verbs": {"base"},
    # Byte streams as Valkey speaks them over RDMA, on any verbs library and connection manager.
    "src/stream": {"base", "verbs"},
    "src/bringup": {"base", "verbs", "fabric"},
    "src/engine": {"base", "verbs", "fabric"},
    "src/bootstrap": {"base"},
    # Processes that meet without a job, what they send each other, and the plugin for NCCL on top.
    "src/membership": {"base", "bootstrap"},
    "src/circuit": {"base", "cluster", "verbs", "bringup", "bootstrap", "membership"},
    "src/nccl": {"base", "bringup", "circuit"},
    # What joins machines knows nothing of what its clients do with it.
    "src/mesh": {"base", "verbs", "fabric", "bringup", "engine", "bootstrap"},
    "src/group": {"base", "fabric", "engine", "bootstrap", "mesh", "collective"},
    # Any verbs library may be underneath; rsocket, any connection manager too.
    "src/rsocket": {"base"},
    "src/rdmacm": {"base", "wire", "cm"},
    # wire: pure codecs, for captures
    "tools": {"base", "wire", "fault", "shuffle", "profile", "cluster", "fabric", "verbs", "bringup", "bootstrap", "collective",
              "mesh", "group", "circuit", "nccl", "trace"},
    # The agent of the overlay is a device's peer on one side and a user of verbs on the other.
    "tools/agent": {"base", "cluster", "fabric", "link", "bootstrap", "mesh", "circuit"},
    # The bridge is a program of byte streams, and takes them as they are inside.
    "tools/bridge": {"base", "stream"},
    "bench": {"base", "cluster", "nccl"},
    # Micro benchmarks take single parts of the lower half, as unit tests do.
    "bench/micro": {"base", "wire", "fault", "cluster", "link", "device", "collective"},
    "include": set(),
}
# Single headers beyond that: the connection manager asks the device through one private interface.
ALLOWED_HEADERS = {"src/rdmacm": {"abi/management.h"}}
LAYERS = {"base", "trace", "wire", "transport", "cm", "fault", "shuffle", "profile", "cluster", "link", "device", "sanitizer", "abi", "rsocket", "rdmacm",
          "fabric", "collective", "verbs", "bringup", "engine", "bootstrap", "mesh", "group", "membership", "circuit", "nccl",
          "stream"}
# Layers that know nothing of verbs: they move bytes and keep files.
WITHOUT_VERBS = {"src/base", "src/trace", "src/wire", "src/transport", "src/cm", "src/fault", "src/shuffle", "src/profile", "src/cluster",
                 "src/link", "src/fabric", "src/collective", "src/bootstrap"}
# What a program that includes a public header should not have to install.
NOT_IN_PUBLIC_HEADERS = ("nlohmann/", "fmt/", "CLI/", "libsmartcols")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SOURCES = {".h", ".hpp", ".c", ".cpp"}


def layer_of(path: str) -> str:
    parts = path.split("/")
    two = "/".join(parts[:2])
    return two if parts[0] == "src" or two in ALLOWED else parts[0]


def objection(path: str, bracket: str, header: str) -> str | None:
    """Why `path` may not include `header`; None if it may."""
    layer = layer_of(path)
    if layer not in ALLOWED:
        return f"layer {layer} is unknown: add it to tests/house/layers.py" if layer.startswith("src/") else None
    target = header.split("/")[0]
    is_unit_test = path.endswith("_test.cpp")
    if target in LAYERS and "/" in header and target != layer.removeprefix("src/"):
        if target not in ALLOWED[layer] and header not in ALLOWED_HEADERS.get(layer, set()):
            may = ", ".join(sorted(ALLOWED[layer])) or "no other layer"
            return f"{layer} may include {may}, not {target}"
    if header.startswith("infiniband/") and layer in WITHOUT_VERBS and not is_unit_test:
        return f"{layer} knows nothing of verbs"
    if layer == "include" and header.startswith(NOT_IN_PUBLIC_HEADERS):
        return "a public header must not need this library"
    if ".." in header.split("/"):
        return "write the path from src/ or include/"
    if bracket == "<" and target in LAYERS:
        return "our own headers are included in quotes"
    return None


def check(root: pathlib.Path) -> list[str]:
    found = []
    for top in sorted({layer.split("/")[0] for layer in ALLOWED}):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in SOURCES or not file.is_file():
                continue
            path = file.relative_to(root).as_posix()
            for number, line in enumerate(file.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                reason = objection(path, *match.groups()) if match else None
                if reason:
                    found.append(f"{path}:{number}: {line.strip()}: {reason}")
            if file.suffix in {".h", ".hpp"} and "#pragma once" not in file.read_text():
                found.append(f"{path}:1: header without #pragma once")
    return found


class Rules(unittest.TestCase):
    def objections(self, path: str, text: str) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True)
            file.write_text(text)
            return check(pathlib.Path(folder))

    def test_lower_layer_is_allowed(self):
        self.assertEqual(self.objections("src/device/qp.cpp", '#include "link/lane.h"\n#include <vector>\n'), [])
        self.assertEqual(self.objections("tools/up.cpp", '#include "cluster/node_file.h"\n'), [])
        self.assertEqual(self.objections("bench/x.cpp", "#include <infiniband/verbs.h>\n"), [])

    def test_higher_layer_is_refused_with_its_line(self):
        found = self.objections("src/link/lane.cpp", '\n#include "device/qp.h"\n')
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("src/link/lane.cpp:2:"), found)

    def test_waist_is_kept_from_both_sides(self):
        self.assertTrue(self.objections("tools/matrix.cpp", '#include "device/qp.h"\n'))
        self.assertTrue(self.objections("bench/lat.cpp", '#include "link/lane.h"\n'))
        self.assertEqual(self.objections("bench/micro/lane.cpp", '#include "link/lane.h"\n'), [])
        self.assertTrue(self.objections("src/base/x.cpp", "#include <infiniband/verbs.h>\n"))

    def test_public_headers_stand_alone(self):
        self.assertTrue(self.objections("include/ringbolt/x.h", "#pragma once\n#include <nlohmann/json.hpp>\n"))
        self.assertTrue(self.objections("include/ringbolt/x.h", '#pragma once\n#include "base/clock.h"\n'))
        self.assertEqual(self.objections("include/ringbolt/x.h", "#pragma once\n#include <ringbolt/y.h>\n"), [])

    def test_form(self):
        self.assertTrue(self.objections("src/device/x.h", "int x;\n"))
        self.assertTrue(self.objections("src/device/x.cpp", '#include "../link/lane.h"\n'))
        self.assertTrue(self.objections("src/device/x.cpp", "#include <link/lane.h>\n"))
        self.assertTrue(self.objections("src/newlayer/x.cpp", "#include <vector>\n#include <map>\n"))


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        return 0 if unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful() else 1
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    found = check(pathlib.Path(sys.argv[1]))
    print("\n".join(found) if found else "every include keeps its layer")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
