#include "base/resolving.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "base/clock.h"
#include "base/resolving_test_support.h"

namespace ringbolt::base {
namespace {

uint64_t in_ms(uint64_t milliseconds) { return now_ns() + milliseconds * 1'000'000; }

TEST(Resolving, addresses_ask_nobody) {
  const LookUp nobody = [](const char*, const char*, const addrinfo*, addrinfo**) {
    ADD_FAILURE() << "asked";
    return EAI_FAIL;
  };
  for (const char* host : {"127.0.0.1", "::1"}) {
    EXPECT_EQ(resolve(host, 4000, false, 0, nobody).addresses.size(), 1U) << host;
  }
  EXPECT_EQ(resolve("nowhere", 4000, true, 0, nobody).error, EADDRNOTAVAIL);
}

TEST(Resolving, names_are_looked_up) {
  EXPECT_FALSE(resolve("localhost", 4000, false, in_ms(60'000)).addresses.empty());
  const LookUp none = [](const char*, const char*, const addrinfo*, addrinfo**) { return EAI_NONAME; };
  const Resolved resolved = resolve("nowhere", 4000, false, in_ms(60'000), none);
  EXPECT_EQ(resolved.error, EADDRNOTAVAIL);
  EXPECT_EQ(resolved.problem, "nowhere: Name or service not known");
}

TEST(Resolving, a_dead_name_service_is_left_behind_at_the_deadline) {
  const test::DeadNameService dead;
  const Resolved resolved = resolve("node0", 4000, false, in_ms(50), dead.look_up());  // hangs if it waits for more
  EXPECT_EQ(resolved.error, ETIMEDOUT);
  EXPECT_EQ(resolved.problem, "node0: the name service does not answer");
}

}  // namespace
}  // namespace ringbolt::base
