#include "mesh/settings.h"

#include <gtest/gtest.h>

#include "mesh/failure.h"

namespace ringbolt::mesh {
namespace {

const Settings kOurs{engine::Checksums::carried, true, 5, 77, 4000};

/// What is said of rank 3 with these bytes, or nothing.
std::string objection(std::span<const std::byte> bytes, const Settings& ours = kOurs) {
  try {
    parse_settings(bytes, 3, ours);
    return {};
  } catch (const JoinError& error) {
    return error.what();
  }
}

std::string objection(const Settings& theirs, const Settings& ours = kOurs) { return objection(emit(theirs), ours); }

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Settings, go_round) {
  Settings theirs = kOurs;
  theirs.random = 78;
  theirs.left_ms = UINT32_MAX;
  EXPECT_EQ(parse_settings(emit(theirs), 3, kOurs), theirs);
}

TEST(Settings, that_differ_are_named) {
  Settings theirs = kOurs;
  theirs.checksums = engine::Checksums::none;
  EXPECT_TRUE(says(objection(theirs), "rank 3 has checksums off, this rank on: set RINGBOLT_CRC alike"));
  theirs = kOurs;
  theirs.is_measured = false;
  EXPECT_TRUE(says(objection(theirs), "rank 3 does not measure its cables, this rank does: set RINGBOLT_MEASURE"));
}

TEST(Settings, tell_device_files_apart) {
  Settings theirs = kOurs;
  theirs.device_file = 6;
  EXPECT_TRUE(says(objection(theirs), "rank 3 has another device file (JACCL_IBV_DEVICES): give all ranks the same"));
  theirs.device_file = 0;
  EXPECT_TRUE(says(objection(theirs), "rank 3 has no device file (JACCL_IBV_DEVICES), and this rank one: give"));
  EXPECT_TRUE(says(objection(kOurs, theirs), "rank 3 has a device file (JACCL_IBV_DEVICES), and this rank none: give"));
  EXPECT_EQ(objection(theirs, theirs), "");
}

TEST(Settings, of_another_length_or_version_are_refused) {
  std::vector<std::byte> bytes = emit(kOurs);
  for (size_t length = 4; length < bytes.size(); ++length) {
    EXPECT_TRUE(says(objection(std::span(bytes).first(length)), "rank 3 described its settings wrongly")) << length;
  }
  bytes.push_back({});
  EXPECT_TRUE(says(objection(bytes), "wrongly"));
  bytes.pop_back();
  bytes[0] = std::byte{3};
  EXPECT_TRUE(says(objection(bytes), "rank 3 speaks version 3 of bring-up, this rank version 6"));
  EXPECT_TRUE(says(objection(std::span<const std::byte>()), "version 0"));
}

TEST(Settings, device_file_counts_by_what_it_says) {
  const bringup::DeviceMatrix two = {{{}, {"rdma_en2", "rdma_en3"}}, {{"rdma_en2"}, {}}};
  bringup::DeviceMatrix other = two;
  EXPECT_EQ(check_of(two), check_of(other));
  other[1][0] = {"rdma_en3"};
  EXPECT_NE(check_of(two), check_of(other));
  const bringup::DeviceMatrix moved = {{{"rdma_en2"}, {}}};
  EXPECT_NE(check_of(moved), check_of({{{}, {"rdma_en2"}}}));
  EXPECT_EQ(check_of({}), 0U);
  EXPECT_NE(check_of(two), 0U);
}

}  // namespace
}  // namespace ringbolt::mesh
