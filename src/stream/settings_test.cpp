#include "stream/settings.h"

#include <gmock/gmock.h>

#include <array>
#include <cerrno>

#include "base/error.h"

namespace ringbolt::stream {
namespace {

/// What is said of settings that can't be; empty of others.
std::string objection_to(const StreamSettings& settings) {
  try {
    check(settings);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.errno_value(), EINVAL);
    return error.what();
  }
  return {};
}

TEST(StreamSettings, of_their_own_can_be) { EXPECT_EQ(objection_to({}), ""); }

TEST(StreamSettings, have_receive_buffers_of_4_kib_to_16_mib) {
  EXPECT_EQ(objection_to({.receive_bytes = 4096}), "");
  EXPECT_EQ(objection_to({.receive_bytes = 16U << 20U}), "");
  EXPECT_THAT(objection_to({.receive_bytes = 4095}), testing::HasSubstr("receive_bytes of 4095"));
  EXPECT_THAT(objection_to({.receive_bytes = (16U << 20U) + 1}), testing::HasSubstr("receive_bytes of 16777217"));
}

TEST(StreamSettings, have_1_to_16_receive_buffers) {
  EXPECT_EQ(objection_to({.receive_buffers = 16}), "");
  EXPECT_THAT(objection_to({.receive_buffers = 0}), testing::HasSubstr("receive_buffers of 0"));
  EXPECT_THAT(objection_to({.receive_buffers = 17}), testing::HasSubstr("receive_buffers of 17"));
}

TEST(StreamSettings, need_memory_for_all_buffers_where_it_is_the_programs) {
  static std::array<std::byte, 8192> memory;
  EXPECT_EQ(objection_to({.receive_bytes = 4096, .receive_buffers = 2, .receive_memory = memory}), "");
  EXPECT_THAT(
      objection_to({.receive_bytes = 4096, .receive_buffers = 2, .receive_memory = std::span(memory).first(8191)}),
      testing::HasSubstr("receive_memory of 8191"));
  EXPECT_THAT(objection_to({.receive_bytes = 4096, .receive_buffers = 3, .receive_memory = memory}),
              testing::HasSubstr("receive_memory of 8192"));
}

TEST(StreamSettings, need_something_to_send_from) {
  EXPECT_EQ(objection_to({.max_send_bytes = 1}), "");
  EXPECT_THAT(objection_to({.max_send_bytes = 0}), testing::HasSubstr("max_send_bytes of 0"));
}

}  // namespace
}  // namespace ringbolt::stream
