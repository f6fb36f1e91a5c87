#include "verbs/errno_meaning.h"

#include <gmock/gmock.h>

#include <cerrno>

#include "base/tcp_meaning.h"

namespace ringbolt::verbs {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(ErrnoMeaning, number_means_another_thing_on_another_platform) {
  EXPECT_EQ(meaning_of(Platform::kLinux, Step::kToRtr, 61).symbol, "ENODATA");
  EXPECT_EQ(meaning_of(Platform::kDarwin, Step::kConnectTcp, 61).symbol, "ECONNREFUSED");
  EXPECT_EQ(meaning_of(Platform::kDarwin, Step::kToRtr, 96), meaning_of(Platform::kLinux, Step::kToRtr, 61));
  EXPECT_EQ(meaning_of(Platform::kDarwin, Step::kToRtr, 60), meaning_of(Platform::kLinux, Step::kToRtr, 110));
  EXPECT_EQ(meaning_of(Platform::kDarwin, Step::kCreateQp, 102), meaning_of(Platform::kLinux, Step::kCreateQp, 95));
}

TEST(ErrnoMeaning, same_errno_means_another_thing_at_another_step) {
  EXPECT_THAT(meaning_of(Platform::kLinux, Step::kCreateQp, 16).cause, HasSubstr("a Mac has 10"));
  EXPECT_THAT(meaning_of(Platform::kLinux, Step::kToRtr, 16).remedy, HasSubstr("reboot"));
}

TEST(ErrnoMeaning, of_tcp_is_what_the_bootstrap_says) {
  for (const int error : {ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, EADDRNOTAVAIL, ETIMEDOUT, ENOENT}) {
    EXPECT_EQ(advice(kThisPlatform, Step::kConnectTcp, error), base::tcp_advice(error)) << error;
    EXPECT_THAT(base::tcp_advice(error), HasSubstr(": ")) << error;
  }
  EXPECT_EQ(base::tcp_advice(EPROTO), "");
  EXPECT_EQ(base::tcp_advice(0), "");
}

TEST(ErrnoMeaning, negative_numbers_mean_the_same) {
  EXPECT_EQ(meaning_of(Platform::kLinux, Step::kPostRecv, -12), meaning_of(Platform::kLinux, Step::kPostRecv, 12));
  EXPECT_THAT(meaning_of(Platform::kLinux, Step::kPostRecv, -12).cause, HasSubstr("frames"));
}

TEST(ErrnoMeaning, numbers_of_this_platform_are_right) {
  for (const auto& [number, symbol] : {std::pair{EINVAL, "EINVAL"},
                                       {ETIMEDOUT, "ETIMEDOUT"},
                                       {EBUSY, "EBUSY"},
                                       {ENODATA, "ENODATA"},
                                       {EOPNOTSUPP, "EOPNOTSUPP"},
                                       {ENOMEM, "ENOMEM"},
                                       {EFAULT, "EFAULT"},
                                       {ECONNREFUSED, "ECONNREFUSED"},
                                       {ENOSYS, "ENOSYS"},
                                       {EHOSTUNREACH, "EHOSTUNREACH"},
                                       {EADDRNOTAVAIL, "EADDRNOTAVAIL"},
                                       {EMSGSIZE, "EMSGSIZE"},
                                       {ENETUNREACH, "ENETUNREACH"}}) {
    EXPECT_EQ(meaning_of(kThisPlatform, Step::kToRtr, number).symbol, symbol);
  }
}

TEST(ErrnoMeaning, of_what_nobody_knows_says_so) {
  const Meaning known = meaning_of(Platform::kLinux, Step::kQueryGid, EBUSY);
  EXPECT_EQ(known.symbol, "EBUSY");
  EXPECT_THAT(known.cause, IsEmpty());
  EXPECT_EQ(meaning_of(Platform::kLinux, Step::kToRtr, 12345).symbol, "");
  EXPECT_EQ(meaning_of(Platform::kLinux, Step::kToRtr, 0).cause, "");
  EXPECT_EQ(advice(Platform::kLinux, Step::kToRtr, 12345),
            "ibv_modify_qp to RTR is not known to fail with this number (12345); look into the kernel's log");
  EXPECT_THAT(advice(Platform::kLinux, Step::kToRtr, 110), HasSubstr("ping the peer's address"));
}

TEST(ErrnoMeaning, of_a_call_that_does_not_return_depends_on_the_call) {
  EXPECT_THAT(advice_if_stuck(Step::kToRtr), HasSubstr("the other end"));
  EXPECT_THAT(advice_if_stuck(Step::kQueryDevice), HasSubstr("idle night"));
  EXPECT_THAT(advice_if_stuck(Step::kRegMr), HasSubstr("reboot"));
  EXPECT_THAT(advice_if_stuck(std::nullopt), HasSubstr("reboot"));
}

}  // namespace
}  // namespace ringbolt::verbs
