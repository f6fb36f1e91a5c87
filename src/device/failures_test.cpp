#include "device/failures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"

namespace ringbolt::device {
namespace {

using testing::HasSubstr;

KeyUse use() {
  KeyUse one;
  one.key = 0x1c07;
  one.address = 0x2000;
  one.length = 64;
  one.access = IBV_ACCESS_REMOTE_WRITE;
  one.pd_key = 1;
  one.qpn = 0x11;
  one.owner = 4711;
  return one;
}

link::Region region() {
  link::Region one;
  one.first = 0x2000;
  one.length = 4096;
  one.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  one.pd_key = 1;
  return one;
}

std::string why(const KeyUse& one, const std::optional<link::Region>& found) {
  return why_key_refused(one, found, std::nullopt, false, false).why;
}

TEST(Failures, name_the_bytes_beyond_a_region) {
  KeyUse one = use();
  one.address = 0x2fff;
  EXPECT_EQ(why(one, region()),
            "the region of rkey 0x1c07 is 4096 bytes at 0x2000; 64 bytes from byte 4095 on were addressed");
  one.address = 0;
  const auto explanation = why_key_refused(one, region(), std::nullopt, false, false);
  EXPECT_THAT(explanation.why, HasSubstr("64 bytes from 0x0 on"));
  EXPECT_THAT(explanation.fix, HasSubstr("no offset"));
}

TEST(Failures, name_access_domain_and_window) {
  link::Region one = region();
  one.access = IBV_ACCESS_LOCAL_WRITE;
  EXPECT_EQ(why(use(), one),
            "the region of rkey 0x1c07 allows IBV_ACCESS_LOCAL_WRITE, and lacks IBV_ACCESS_REMOTE_WRITE");
  one = region();
  one.pd_key = 2;
  EXPECT_EQ(why(use(), one), "rkey 0x1c07 is of another protection domain (2) than the peer's queue pair 0x11 (1)");
  one = region();
  one.bound_qpn = 0x12;
  EXPECT_THAT(why(use(), one), HasSubstr("bound to queue pair 0x12, and 0x11 uses it"));
  EXPECT_THAT(why(use(), region()), HasSubstr("not all mapped any more"));
}

TEST(Failures, tell_unknown_keys_apart) {
  PeerNotes::Note gone;
  gone.text = "its region was deregistered at server.c:214";
  gone.time_ns = base::now_ns();
  EXPECT_THAT(
      why_key_refused(use(), std::nullopt, gone, false, false).why,
      HasSubstr(
          "rkey 0x1c07 is no key of the peer's process 4711 any more: its region was deregistered at server.c:214, "));
  EXPECT_THAT(why_key_refused(use(), std::nullopt, std::nullopt, true, false).why,
              HasSubstr("is a key of this process"));
  EXPECT_THAT(why_key_refused(use(), std::nullopt, std::nullopt, false, true).why,
              HasSubstr("has a region with 0x71c0000"));
  EXPECT_THAT(why(use(), std::nullopt), HasSubstr("is no key of the peer's process 4711, nor of"));
}

TEST(Failures, count_time_as_people_do) {
  const uint64_t now = base::now_ns();
  EXPECT_THAT(age_text(now), HasSubstr("us ago"));
  EXPECT_THAT(age_text(now - 12'000'000), HasSubstr("ms ago"));
  EXPECT_THAT(age_text(now - 3'000'000'000), HasSubstr("3.0 s ago"));
  EXPECT_EQ(age_text(now + 1'000'000'000), "0 us ago");
}

TEST(Failures, know_every_status_by_its_name) {
  EXPECT_EQ(text_of(IBV_WC_SUCCESS), "IBV_WC_SUCCESS");
  EXPECT_EQ(text_of(IBV_WC_RNR_RETRY_EXC_ERR), "IBV_WC_RNR_RETRY_EXC_ERR");
  EXPECT_EQ(text_of(IBV_WC_GENERAL_ERR), "IBV_WC_GENERAL_ERR");
  EXPECT_EQ(text_of(static_cast<ibv_wc_status>(31)), "status 31");
}

}  // namespace
}  // namespace ringbolt::device
