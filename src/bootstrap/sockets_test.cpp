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

/// Two addresses of one host: `first`, and 127.0.0.1.
base::LookUp first_and_loopback(const char* first) {
  return [first](const char*, const char* port, const addrinfo* hints, addrinfo** list) {
    addrinfo* second = nullptr;
    const int result = ::getaddrinfo(first, port, hints, list);
    EXPECT_EQ(result == 0 ? ::getaddrinfo("127.0.0.1", port, hints, &second) : result, 0);
    if (result == 0) {
      (*list)->ai_next = second;  // one address is one element; freeaddrinfo() frees one after the other
    }
    return result;
  };
}

TEST(Sockets, only_a_host_that_refuses_at_each_address_has_nobody_who_listens) {
  Listening nobody = Listening::open("127.0.0.1", 0, "");
  nobody.sockets.clear();
  const HostPort at{"node0", nobody.port};
  const Dialled refused = dial(at, in_ms(10'000), first_and_loopback("127.0.0.1"));
  EXPECT_EQ(refused.error, ECONNREFUSED);
  EXPECT_TRUE(refused.have_all_refused);
  // TCP has no broadcast: connect() fails at once, but nobody has refused.
  const Dialled unreached = dial(at, in_ms(10'000), first_and_loopback("255.255.255.255"));
  EXPECT_EQ(unreached.error, ECONNREFUSED);
  EXPECT_FALSE(unreached.have_all_refused);
  EXPECT_FALSE(dial({"node0", 1}, in_ms(10'000), [](auto...) { return EAI_NONAME; }).have_all_refused);
}

}  // namespace
}  // namespace ringbolt::bootstrap
