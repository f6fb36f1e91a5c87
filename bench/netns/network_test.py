"""What the network benchmark reads from other programs' output."""

import unittest

import network

BANDWIDTH = """---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      16213            0.00               4.24   \t\t   0.008089
---------------------------------------------------------------------------------------
"""
LATENCY = """ #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]
 2       2000          4.92           2041.15      5.53     \t       8.43        \t67.19  \t\t14.16   \t\t2041.15
"""


class Reading(unittest.TestCase):
    def test_perftest(self):
        self.assertEqual(network.perftest_gbps(BANDWIDTH), 4.24)
        self.assertEqual(network.perftest_typical_us(LATENCY), 5.53)

    def test_iperf(self):
        self.assertEqual(network.iperf_gbps('{"end": {"sum_received": {"bits_per_second": 22.5e9}}}'), 22.5)

    def test_output_without_figures_is_named(self):
        with self.assertRaisesRegex(network.Unmeasured, "Couldn't connect"):
            network.perftest_gbps("Couldn't connect to 10.77.0.1:18500\n")

    def test_summary(self):
        found = network.summary([3.0, 1.0, 2.0])
        self.assertEqual((found["median"], found["least"], found["most"]), (2.0, 1.0, 3.0))


if __name__ == "__main__":
    unittest.main()
