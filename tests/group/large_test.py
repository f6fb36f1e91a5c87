"""Calls of many chunks on few cables: memory runs short everywhere at once, and all goes on."""

import ranks


class Large(ranks.GroupCase):
    def many(self, spec, n, times):
        group = self.join(spec, n)
        times = max(2, times // ranks.SLOWNESS)
        self.all_run(group, f"call all_reduce count=4194304 type=float32 times={times} timeout=60000")

    def test_on_a_ring(self):
        self.many("ring:4", 4, 8)

    def test_on_a_mesh(self):
        self.many("mesh:4", 4, 40)


if __name__ == "__main__":
    ranks.main()
