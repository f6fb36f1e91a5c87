#include "base/variables.h"

#include <gtest/gtest.h>

namespace ringbolt::base {
namespace {

using Lines = std::vector<std::string>;

std::vector<std::string> odd(std::vector<const char*> entries) {
  entries.push_back(nullptr);
  return odd_variables(entries.data());
}

TEST(Variables, all_that_is_right_or_not_ours_is_not_odd) {
  EXPECT_EQ(odd({}), Lines{});
  EXPECT_EQ(odd({"RINGBOLT_LOG=debug", "RINGBOLT_LOG=quiet", "RINGBOLT_CRC=every", "RINGBOLT_ADDR_12=127.0.0.1",
                 "RINGBOLT_DEVICE_0=rdma_en2", "RINGBOLT_GROUP_PORT=65535", "RINGBOLT_RANK=0", "RINGBOLT_CLUSTER=x"}),
            Lines{});
  EXPECT_EQ(odd({"RINGBOLT_LOG=", "RINGBOLT_GROUP_PORT=", "PATH=/bin", "RINGBOLT_MY_OWN_THING=1", "RINGBOLT_MINE=1",
                 "RINGBOLT", "=", "RINGBOLT_="}),
            Lines{});
}

TEST(Variables, unknown_words_are_told_with_those_that_are_known) {
  EXPECT_EQ(odd({"RINGBOLT_LOG=verbose"}), Lines{"RINGBOLT_LOG=verbose: give one of quiet, debug, or unset it"});
  EXPECT_EQ(odd({"RINGBOLT_LOG=debu"}), Lines{"RINGBOLT_LOG=debu: give one of quiet, debug, or unset it"});
  EXPECT_EQ(odd({"RINGBOLT_LOG=a\nb\x1b"}), Lines{"RINGBOLT_LOG=a?b?: give one of quiet, debug, or unset it"});
}

TEST(Variables, numbers_are_told_with_their_range) {
  for (const char* value : {"0", "65536", "-1", "99999999999999999999", "1e3", "nan", "0x10", " 1", "1 "}) {
    const std::string entry = std::string("RINGBOLT_GROUP_PORT=") + value;
    EXPECT_EQ(odd({entry.c_str()}), Lines{entry + ": give a whole number from 1 to 65535, or unset it"});
  }
}

TEST(Variables, slips_are_told_with_what_was_meant) {
  EXPECT_EQ(odd({"RINGBOLT_LGO=debug"}), Lines{"RINGBOLT_LGO means nothing to Ringbolt: did you mean RINGBOLT_LOG?"});
  EXPECT_EQ(odd({"RINGBOLT_CLUTSER=ring4"}),
            Lines{"RINGBOLT_CLUTSER means nothing to Ringbolt: did you mean RINGBOLT_CLUSTER?"});
}

TEST(Variables, every_variable_takes_what_it_accepts) {
  for (const OwnVariable& one : own_variables()) {
    const std::string name = std::string(one.name) + (one.name.ends_with('_') ? "0" : "");
    const std::string first(one.accepted.substr(0, one.accepted.find(' ')));
    const std::string entry = name + "=" + (one.most != 0 ? std::to_string(one.most) : first);
    EXPECT_EQ(odd({entry.c_str()}), Lines{}) << entry;
  }
}

}  // namespace
}  // namespace ringbolt::base
