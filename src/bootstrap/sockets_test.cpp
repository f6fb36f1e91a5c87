#include "bootstrap/sockets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "base/clock.h"
#include "base/error.h"
#include "base/resolving_test_support.h"

namespace ringbolt::bootstrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

uint64_t in_ms(uint64_t milliseconds) { return base::now_ns() + milliseconds * 1'000'000; }

TEST(Sockets, a_dead_name_service_keeps_neither_callers_nor_rank_0) {
  const base::test::DeadNameService dead;
  const Dialled dialled = dial({"node0", 4000}, in_ms(50), dead.look_up());
  EXPECT_EQ(dialled.error, ETIMEDOUT);
  EXPECT_THAT(dialled.problem, HasSubstr("the name service does not answer"));
  try {
    Listening::open("127.0.0.1", 0, "node0", in_ms(50), dead.look_up());
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.errno_value(), ETIMEDOUT);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("the name service does not answer"),
                                    HasSubstr("give RINGBOLT_BIND an address instead")));
  }
}

}  // namespace
}  // namespace ringbolt::bootstrap
