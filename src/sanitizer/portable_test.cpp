// Each limit of each profile: what it allows is not objected to, one more is, and in that profile's name.

#include "sanitizer/portable.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "profile/catalogue.h"

namespace ringbolt::sanitizer {
namespace {

/// Whether `words` object in the name of that profile: "a, b: why; c: why".
bool objects_for(const std::string& words, const std::string& name) {
  for (size_t at = 0; at < words.size();) {
    const size_t end = std::min(words.find("; ", at), words.size());
    const std::string names = words.substr(at, words.find(": ", at) - at);
    if ((", " + names + ",").find(", " + name + ",") != std::string::npos) {
      return true;
    }
    at = end + 2;
  }
  return false;
}

/// `words_of(value)` objects for a profile beyond its `limit` alone; 0: never.
void expect_limit(const char* what, const std::function<uint64_t(const profile::Profile&)>& limit,
                  const std::function<std::string(uint64_t)>& words_of) {
  size_t limited = 0;
  for (const profile::NamedProfile& known : profile::known_profiles()) {
    const auto one = profile::parse_profile(known.name);
    ASSERT_TRUE(one);
    const uint64_t most = limit(*one);
    if (most == 0) {
      EXPECT_FALSE(objects_for(words_of(UINT16_MAX), one->name)) << what << " of " << one->name;
      continue;
    }
    ++limited;
    EXPECT_FALSE(objects_for(words_of(most), one->name)) << what << " of " << one->name << ": " << words_of(most);
    EXPECT_TRUE(objects_for(words_of(most + 1), one->name)) << what << " of " << one->name;
  }
  EXPECT_NE(limited, 0U) << what << ": no profile has such a limit, and nothing was tested";
}

TEST(PortabilityOfEach, limit_is_met_exactly) {
  const Portability all;
  const auto uc = [&](const ibv_qp_cap& cap) {  // the one type that every profile has
    ibv_qp_init_attr wanted{};
    wanted.qp_type = IBV_QPT_UC;
    wanted.cap = cap;
    return all.of_queue_pair(wanted);
  };
  const auto depth = [](const profile::Profile& one) { return one.limits.qp_wr; };
  expect_limit("sends", depth, [&](uint64_t n) { return uc({static_cast<uint32_t>(n), 1, 1, 1, 0}); });
  expect_limit("receives", depth, [&](uint64_t n) { return uc({1, static_cast<uint32_t>(n), 1, 1, 0}); });
  const auto pieces = [](const profile::Profile& one) { return one.limits.sge; };
  expect_limit("pieces sent", pieces, [&](uint64_t n) { return uc({1, 1, static_cast<uint32_t>(n), 1, 0}); });
  expect_limit("pieces received", pieces, [&](uint64_t n) { return uc({1, 1, 1, static_cast<uint32_t>(n), 0}); });
  expect_limit(
      "entries", [](const auto& one) { return one.limits.cqe; },
      [&](uint64_t n) { return all.of_queue(static_cast<uint32_t>(n), false); });
  expect_limit(
      "bytes of a message", [](const auto& one) { return one.limits.message_bytes; },
      [&](uint64_t n) { return all.of_request(IBV_WR_SEND, n); });
}

TEST(PortabilityOfEach, attribute_counts_only_where_it_is_set) {
  const Portability all;
  ibv_qp_attr attributes{};
  attributes.max_rd_atomic = attributes.max_dest_rd_atomic = UINT8_MAX;
  EXPECT_EQ(all.of_change(attributes, IBV_QP_STATE), "") << "what is not in the mask says nothing";
  for (const int mask : {int{IBV_QP_MAX_QP_RD_ATOMIC}, int{IBV_QP_MAX_DEST_RD_ATOMIC}}) {
    for (const profile::NamedProfile& known : profile::known_profiles()) {
      const auto one = profile::parse_profile(known.name);
      const bool is_limited = one->limits.read_atomic != 0 && one->limits.read_atomic < UINT8_MAX;
      EXPECT_EQ(objects_for(all.of_change(attributes, mask), one->name), is_limited) << one->name;
    }
  }
}

TEST(PortabilityOfEach, operation_type_and_feature_is_objected_to_where_it_is_missing) {
  const Portability all;
  constexpr std::pair<ibv_wr_opcode, uint8_t> kOperations[] = {{IBV_WR_SEND, profile::kSend},
                                                               {IBV_WR_SEND_WITH_IMM, profile::kSendImmediate},
                                                               {IBV_WR_RDMA_WRITE, profile::kWrite},
                                                               {IBV_WR_RDMA_WRITE_WITH_IMM, profile::kWriteImmediate},
                                                               {IBV_WR_RDMA_READ, profile::kRead},
                                                               {IBV_WR_ATOMIC_CMP_AND_SWP, profile::kAtomic},
                                                               {IBV_WR_ATOMIC_FETCH_AND_ADD, profile::kAtomic},
                                                               {IBV_WR_LOCAL_INV, profile::kInvalidateOrBind},
                                                               {IBV_WR_SEND_WITH_INV, profile::kInvalidateOrBind}};
  for (const profile::NamedProfile& known : profile::known_profiles()) {
    const auto one = profile::parse_profile(known.name);
    for (const auto& [opcode, bit] : kOperations) {
      EXPECT_EQ(objects_for(all.of_request(opcode, 8), one->name), !one->allows(bit)) << one->name << " " << opcode;
    }
    for (const auto& [type, bit] :
         {std::pair{IBV_QPT_RC, profile::kRc}, {IBV_QPT_UC, profile::kUc}, {IBV_QPT_UD, profile::kUd}}) {
      ibv_qp_init_attr wanted{};
      wanted.qp_type = type;
      EXPECT_EQ(objects_for(all.of_queue_pair(wanted), one->name), (one->limits.qp_types & bit) == 0) << one->name;
    }
    EXPECT_EQ(objects_for(all.of_srq(), one->name), !one->limits.has_srq) << one->name;
    EXPECT_EQ(objects_for(all.of_window(), one->name), !one->limits.has_windows) << one->name;
    EXPECT_EQ(objects_for(all.of_queue(1, true), one->name), !one->knobs.has_channels) << one->name;
    EXPECT_EQ(objects_for(all.of_region(0x10000, 0x20000, 0), one->name), one->knobs.zero_rkey) << one->name;
    EXPECT_EQ(objects_for(all.of_region(0x10008, 0x10008, 0), one->name), one->knobs.wants_aligned_regions)
        << one->name;
    EXPECT_FALSE(objects_for(all.of_region(0x10000, 0x10000, IBV_ACCESS_LOCAL_WRITE), one->name)) << one->name;
  }
}

}  // namespace
}  // namespace ringbolt::sanitizer
