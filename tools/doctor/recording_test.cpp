#include "doctor/recording.h"

#include <gtest/gtest.h>

namespace ringbolt::tools::doctor {
namespace {

TEST(Recording, comes_back_as_it_was_written) {
  Recording recording;
  recording.put({"a", "ip -o address", "1: lo\n== not a header\n!! nor this\n\nlast\n"});
  recording.put({"a", "nft list ruleset", "", "nft is not installed"});
  recording.put({kNoHost, "cluster", "{}\n"});
  recording.put({"b", "empty"});
  EXPECT_EQ(parse_recording(emit_recording(recording), "x"), recording);
}

TEST(Recording, takes_greetings_for_nothing_and_the_point_for_the_host) {
  const Recording recording = parse_recording("Welcome!\n== . a b\nx\r\n!! . c: no: way\n== nonsense\ny\n", "box");
  EXPECT_EQ(recording.readings, (std::vector<Reading>{{"box", "a b", "x\n"}, {"box", "c", "", "no: way"}}));
}

TEST(Recording, of_one_source_has_what_came_last) {
  const Recording recording = parse_recording("== . a\n1\n== . a\n2\n", "box");
  ASSERT_EQ(recording.readings.size(), 1U);
  EXPECT_EQ(recording.find("box", "a")->text, "2\n");
  EXPECT_EQ(recording.find("box", "b"), nullptr);
}

TEST(Recording, tells_pasted_outputs_apart) {
  const Recording recording = parse_pasted(
      "chatter\nhca_id:\trdma_en2\n\tstate: PORT_ACTIVE (4)\nhca_id:\trdma_en3\nen2: flags=8863<UP> mtu 1500\n\tether "
      "1:2\n"
      "en3: flags=8863<UP> mtu 1500\nHardware Port: Ethernet\nDevice: en0\nProductName:\tmacOS\nProductVersion:\t26.3\n"
      "Thunderbolt/USB4:\n  Speed: Up to 80 Gb/s\nenabled\n",
      "mac");
  EXPECT_EQ(recording.find("mac", "ibv_devinfo -v")->text,
            "hca_id:\trdma_en2\n\tstate: PORT_ACTIVE (4)\nhca_id:\trdma_en3\n");
  EXPECT_NE(recording.find("mac", "ifconfig -a")->text.find("en3: flags"), std::string::npos);
  EXPECT_EQ(recording.find("mac", "networksetup -listallhardwareports")->text,
            "Hardware Port: Ethernet\nDevice: en0\n");
  EXPECT_EQ(recording.find("mac", "sw_vers")->text, "ProductName:\tmacOS\nProductVersion:\t26.3\n");
  EXPECT_EQ(recording.find("mac", "rdma_ctl status")->text, "enabled\n");
  EXPECT_EQ(recording.find("mac", "uname")->text, "Darwin\n");
  EXPECT_TRUE(parse_pasted("nothing of the kind\n", "mac").readings.empty());
}

}  // namespace
}  // namespace ringbolt::tools::doctor
