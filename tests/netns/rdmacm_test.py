"""Unmodified programs that connect through rdma_cm, between namespaces and by both families of addresses."""

import shutil

import namespaces
from namespaces import NamespaceCase, command

namespaces.need("rping")

ADDRESSES = {"IPv4": "10.77.0.1", "IPv6": "fd77::1"}
# Server, client; {a} is the server's address.
PAIRS = {
    "rping": (["rping", "-s", "-a", "{a}", "-C", "20", "-v", "-V"], ["rping", "-c", "-a", "{a}", "-C", "20", "-v", "-V"]),
    "rping, long": (["rping", "-s", "-a", "{a}", "-C", "5", "-S", "60000", "-V"],
                    ["rping", "-c", "-a", "{a}", "-C", "5", "-S", "60000", "-V"]),
    "ucmatose": (["ucmatose", "-c", "5", "-b", "{a}"], ["ucmatose", "-c", "5", "-s", "{a}"]),
    "udaddy": (["udaddy", "-b", "{a}"], ["udaddy", "-s", "{a}"]),
    "rdma_server": (["rdma_server", "-s", "{a}"], ["rdma_client", "-s", "{a}"]),
    "rstream": (["rstream", "-b", "{a}", "-S", "4096", "-C", "50", "-T", "v"],
                ["rstream", "-s", "{a}", "-S", "4096", "-C", "50", "-T", "v"]),
    "ib_send_bw -R": (["ib_send_bw", "-R", "-n", "200"], ["ib_send_bw", "-R", "-n", "200", "{a}"]),
}
IPV4_ONLY = {"ib_send_bw -R"}  # without --ipv6 it takes no other


class Connections(NamespaceCase):
    def listens(self):
        """Whether a program of node 0 has published a service."""
        slots = self.root / "clusters" / self.name / "slots-0"
        return any(path.stat().st_size > 0 for path in slots.glob("*.services"))

    def connect(self, server_words, client_words):
        server = self.start_on(0, *server_words)
        command.wait_until(lambda: self.listens() or server.poll() is not None, f"{server_words[0]} listens")
        self.on(1, *client_words, timeout=60)
        said, complaint = server.communicate(timeout=command.PATIENCE_S)
        self.assertEqual(server.returncode, 0, said + complaint)
        command.wait_until(lambda: not self.listens(), "its service is gone")

    def test_programs_of_librdmacm_by_both_families(self):
        self.up("line:2")
        for name, pair in PAIRS.items():
            for family, address in ADDRESSES.items():
                if not shutil.which(pair[0][0]) or (family != "IPv4" and name in IPV4_ONLY):
                    continue
                with self.subTest(program=name, family=family):
                    self.connect(*([word.format(a=address) for word in words] for words in pair))


if __name__ == "__main__":
    namespaces.main()
