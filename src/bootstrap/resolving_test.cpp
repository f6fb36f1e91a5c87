#include "bootstrap/resolving.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <future>

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/sockets.h"

namespace ringbolt::bootstrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

uint64_t in_ms(uint64_t milliseconds) { return base::now_ns() + milliseconds * 1'000'000; }

/// A name service that answers nobody until this ends.
class Dead {
 public:
  ~Dead() { release_.set_value(); }
  LookUp look_up() const {
    return [released = released_](const char*, const char*, const addrinfo*, addrinfo**) {
      released.wait();
      return EAI_AGAIN;
    };
  }

 private:
  std::promise<void> release_;
  std::shared_future<void> released_ = release_.get_future().share();
};

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
  Dead dead;
  const Resolved resolved = resolve("node0", 4000, false, in_ms(50), dead.look_up());  // hangs if it waits for more
  EXPECT_EQ(resolved.error, ETIMEDOUT);
  EXPECT_EQ(resolved.problem, "node0: the name service does not answer");
}

TEST(Resolving, a_dead_name_service_keeps_neither_callers_nor_rank_0) {
  Dead dead;
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
