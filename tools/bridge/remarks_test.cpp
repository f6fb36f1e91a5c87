#include "bridge/remarks.h"

#include <gtest/gtest.h>

namespace ringbolt::tools::bridge {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

TEST(Remarks, of_one_kind_are_said_once_a_second) {
  Remarks remarks;
  EXPECT_TRUE(remarks.may_say("a -> b: not-allowed", 5));
  EXPECT_FALSE(remarks.may_say("a -> b: not-allowed", 6));
  EXPECT_FALSE(remarks.may_say("a -> b: not-allowed", 4 + kSecondNs));
  EXPECT_TRUE(remarks.may_say("a -> b: not-allowed", 5 + kSecondNs));
  EXPECT_FALSE(remarks.may_say("a -> b: not-allowed", 6 + kSecondNs));
}

TEST(Remarks, of_another_kind_do_not_wait) {
  Remarks remarks;
  for (int i = 0; i < 100; ++i) {  // however many there are, none is forgotten
    EXPECT_TRUE(remarks.may_say(std::to_string(i), 5));
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(remarks.may_say(std::to_string(i), 6));
  }
}

}  // namespace
}  // namespace ringbolt::tools::bridge
