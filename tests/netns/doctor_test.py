"""`ringbolt doctor` on two machines that ssh reaches, played by network namespaces: nothing is found while they are well, each
illness that is put into them is named first, and what the doctor would do mends it."""

import json
import os
import pathlib
import shutil
import subprocess

import namespaces
from namespaces import command
from ssh_hosts import HostCase

namespaces.need("ping")


def plan(*cables):
    ports = [{"name": f"rdma_{port}", "netdev": port} for port in ("en2", "en3")]
    nodes = [{"name": host, "ports": ports} for host in ("left", "right")]
    return json.dumps({"ringbolt": 1, "kind": "hosts", "nodes": nodes, "cables": [{"between": list(ends)} for ends in cables]})


AS_IT_IS = plan(("left:rdma_en2", "right:rdma_en3"), ("left:rdma_en3", "right:rdma_en2"))
CROSSED = plan(("left:rdma_en2", "right:rdma_en2"), ("left:rdma_en3", "right:rdma_en3"))


class Doctor(HostCase):
    def write_configuration(self):
        super().write_configuration()
        for node in (0, 1):
            with (self.keys / f"sshd{node}").open("a") as file:
                file.write("AcceptEnv *\n")

    def look(self, *words, expect):
        return json.loads(self.type("doctor", "--json", *(words or ("--hosts", "left,right")), expect=expect).stdout)

    def first(self, *words):
        """The findings, of which the first is an error or a warning."""
        return self.look(*words, expect=1)["findings"]

    def in_node(self, node, line):
        subprocess.run(["ip", "netns", "exec", f"rb-{self.name}-{node}", "sh", "-ec", line], check=True)

    def well(self, *words):
        found = self.look(*words, expect=0)
        self.assertEqual(found["findings"], [])

    def is_well(self):
        """An interface that was off takes a second."""
        return subprocess.run(self.there(["doctor", "--hosts", "left,right"]), env=self.environment, capture_output=True,
                              timeout=command.PATIENCE_S, check=False).returncode == 0

    def written(self, text):
        path = self.root / "plan.json"
        path.write_text(text)
        return str(path)

    def test_machines_that_are_well(self):
        self.well()
        planned = self.look("--hosts", self.written(AS_IT_IS), expect=0)
        self.assertEqual(planned["findings"], [])
        states = {one["id"]: one["state"] for one in planned["checks"]}
        for check in ("mtu-differs", "subnets-differ", "cable-crossed", "rp-filter-strict", "address-twice"):
            self.assertEqual(states[check], "healthy", check)

    def test_illnesses_of_the_network_are_named_first_and_mended(self):
        """What is done, on which machine, what undoes it, the check, whether the doctor's own command mends it. ssh goes over
        the first cable, left's en2."""
        has_nft = bool(shutil.which("nft", path=os.environ["PATH"] + ":/usr/sbin:/sbin"))
        seeds = [
            ("ip link set en3 mtu 1500", 1, "ip link set en3 mtu 9000", "mtu-differs", True),
            ("tc qdisc add dev en2 root tbf rate 500Mbit burst 100k latency 10ms", 0, "tc qdisc del dev en2 root",
             "cable-shaped", True),
            ("sysctl -qw net/ipv4/conf/en2/rp_filter=1", 0, "sysctl -qw net/ipv4/conf/en2/rp_filter=0",
             "rp-filter-strict", True),
            ("ip route add 10.99.0.0/24 via 10.77.0.2", 0, "ip route del 10.99.0.0/24", "forwarding-off", True),
            ("ip route add 10.77.1.0/25 dev lo", 0, "ip route del 10.77.1.0/25 dev lo", "route-stolen", False),
            ("ip address del 10.77.1.1/24 dev en2; ip address add 10.77.9.1/24 dev en2", 1,
             "ip address del 10.77.9.1/24 dev en2; ip address add 10.77.1.1/24 dev en2", "subnets-differ", False),
            ("ip address del 10.77.1.1/24 dev en2; ip address add 10.77.1.2/24 dev en2", 1,
             "ip address del 10.77.1.2/24 dev en2; ip address add 10.77.1.1/24 dev en2", "address-twice", False),
            ("ip address add 10.77.0.9/24 dev en3", 0, "ip address del 10.77.0.9/24 dev en3", "subnet-shared", False),
        ]
        if has_nft:
            seeds.append(("nft add table inet x; nft add chain inet x y '{ type filter hook input priority 0; }'; "
                          "nft add rule inet x y udp dport 4791 drop", 0, "nft delete table inet x", "firewall-drops", True))
        # Last: these interfaces lose their link-local addresses for good, and with them who answers on them.
        seeds.append(("ip link set en2 down", 1, "ip link set en2 up", "port-off", False))
        for sick, node, undo, check, can_mend in seeds:
            with self.subTest(check):
                self.in_node(node, sick)
                try:
                    found = self.first()
                    self.assertEqual(found[0]["id"], check, found)
                    if can_mend:
                        self.type("doctor", "--hosts", "left,right", "--apply", check, "--yes")
                        self.well()
                finally:
                    self.in_node(node, f"({undo}) 2> /dev/null || true; sysctl -qw net.ipv4.ip_forward=0")
                    self.in_node(1, "sysctl -qw net.ipv4.ip_forward=0")
                command.wait_until(self.is_well, f"{check} is gone")

    def test_illnesses_of_plans_and_variables_are_named_first(self):
        devices = [{"ssh": "left", "ips": ["10.77.0.1"], "rdma": [None, "rdma_en9"]},
                   {"ssh": "right", "ips": ["10.77.0.2"], "rdma": ["rdma_en3", None]}]
        addresses = [{"ssh": "left", "ips": ["10.77.7.7"]}, {"ssh": "right", "ips": ["10.77.0.2"]}]
        for text, check in ((CROSSED, "cable-crossed"), (json.dumps(devices), "hostfile-device-unknown"),
                            (json.dumps(addresses), "hostfile-address-unknown")):
            with self.subTest(check):
                self.assertEqual(self.first("--hosts", self.written(text))[0]["id"], check)
        folder = self.root / "second"
        folder.mkdir()
        (folder / "libibverbs.so.1").symlink_to("/lib/x86_64-linux-gnu/libibverbs.so.1")
        sane = self.environment["RINGBOLT_SSH"]
        for variable, check in (("RINGBOLT_FAULTS=loss", "faults-injected"),
                                ("GLOO_SOCKET_IFNAME=eth77", "socket-interface-unknown"),
                                ("NCCL_SOCKET_IFNAME=lo", "socket-interface-away"),
                                ("VLLM_HOST_IP=10.9.9.9", "vllm-host-unknown"),
                                ("MLX_IBV_DEVICES=/no/such/file", "named-file-missing"),
                                ("UCX_NET_DEVICES=mlx5_7:1", "ucx-device-unknown"),
                                ("RINGBOLT_COORDINATOR=10.9.9.9:1", "coordinator-unknown"),
                                ("RINGBOLT_LOG=loud", "ringbolt-variable-odd"),
                                ("NCCL_IB_SUBNET_PREFIX_LEN=30", "nccl-prefix-length"),
                                ("NCCL_NET_PLUGIN=nowhere", "nccl-plugin-missing"),
                                (f"LD_LIBRARY_PATH={folder}", "library-mixed")):
            with self.subTest(variable):
                self.environment["RINGBOLT_SSH"] = f"{sane} -o SetEnv={variable}"
                self.assertEqual(self.first()[0]["id"], check)
        self.environment["RINGBOLT_SSH"] = sane
        self.well()

    def test_a_machine_that_is_gone_or_slow_is_named_and_the_other_is_read(self):
        found = self.look("--hosts", "left,nobody", "--timeout", "4", expect=1)
        self.assertEqual([(one["id"], one["host"]) for one in found["findings"]], [("host-unreachable", "nobody")])
        self.assertEqual(found["hosts"], ["left", "nobody"])
        subprocess.run(["prlimit", f"--pid={self.daemons[1].pid}", "--nofile=200:200"], check=True)
        self.assertEqual([(one["id"], one["host"]) for one in self.first()], [("open-files-low", "right")])

    def test_bundle_tells_the_same_and_names_nobody(self):
        self.in_node(1, "ip link set en3 mtu 1500")
        bundle = self.root / "bundle.txt"
        self.type("doctor", "--hosts", "left,right", "--bundle", bundle, expect=1)
        self.assertNotRegex(bundle.read_text(), r"\bleft\b|\bright\b")
        found = json.loads(self.type("doctor", "--json", "--from", bundle, expect=1).stdout)["findings"]
        self.assertEqual([(one["id"], one["host"], one["object"]) for one in found], [("mtu-differs", "host2", "en3")])


class Cluster(namespaces.NamespaceCase):
    """Nodes that are namespaces, read from inside."""

    def test_faults_and_mtus_of_nodes(self):
        self.up("ring:3")
        words = ("doctor", "--cluster", self.name, "--json")
        self.assertEqual(json.loads(self.call(*words).stdout)["findings"], [])
        subprocess.run(["ip", "-n", f"rb-{self.name}-1", "link", "set", "en2", "mtu", "1500"], check=True)
        found = json.loads(self.call(*words, expect=1).stdout)["findings"]
        self.assertEqual([(one["id"], one["host"], one["object"]) for one in found], [("mtu-differs", "n1", "en2")])
        self.call("doctor", "--cluster", self.name, "--apply", "mtu-differs", "--yes")
        self.call("cut", "--cluster", self.name, "0-1")
        found = json.loads(self.call(*words, expect=1).stdout)["findings"]
        self.assertEqual(found[0]["id"], "cable-cut")
        self.call("doctor", "--cluster", self.name, "--apply", "cable-cut", "--yes")
        self.assertEqual(json.loads(self.call(*words).stdout)["findings"], [])


if __name__ == "__main__":
    namespaces.main()
