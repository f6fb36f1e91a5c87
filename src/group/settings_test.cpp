#include "group/settings.h"

#include <gtest/gtest.h>

#include "group/failure.h"

namespace ringbolt::group {
namespace {

const Settings kOurs{engine::Checksums::carried, true, 77, 4000};

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

TEST(Settings, of_another_length_or_version_are_refused) {
  std::vector<std::byte> bytes = emit(kOurs);
  for (size_t length = 4; length < bytes.size(); ++length) {
    EXPECT_TRUE(says(objection(std::span(bytes).first(length)), "rank 3 described its settings wrongly")) << length;
  }
  bytes.push_back({});
  EXPECT_TRUE(says(objection(bytes), "wrongly"));
  bytes.pop_back();
  bytes[0] = std::byte{2};
  EXPECT_TRUE(says(objection(bytes), "rank 3 speaks version 2 of bring-up, this rank version 3"));
  EXPECT_TRUE(says(objection(std::span<const std::byte>()), "version 0"));
}

}  // namespace
}  // namespace ringbolt::group
