#include "link/mad_socket.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>

namespace ringbolt::link {
namespace {

MadFrame sample() {
  MadFrame frame;
  frame.sender_slot = 7;
  frame.source = wire::ipv4_address(127, 77, 0, 2);
  frame.destination = wire::ipv4_address(127, 77, 1, 2);
  frame.flow_label = 0xabaef;
  frame.traffic_class = 32;
  frame.is_from_network = true;
  for (size_t i = 0; i < frame.bytes.size(); ++i) {
    frame.bytes[i] = static_cast<std::byte>(i * 7);
  }
  return frame;
}

bool same(const MadFrame& one, const MadFrame& other) {
  return one.sender_slot == other.sender_slot && one.source == other.source && one.destination == other.destination &&
         one.flow_label == other.flow_label && one.traffic_class == other.traffic_class &&
         one.is_from_network == other.is_from_network && one.bytes == other.bytes;
}

class MadSockets : public testing::Test {
 protected:
  MadSockets() {
    char pattern[] = "/tmp/rbm-XXXXXX";
    folder = mkdtemp(pattern);
  }
  ~MadSockets() override { std::filesystem::remove_all(folder); }
  std::string folder;
};

TEST(MadFrame, comes_back_as_it_was) {
  std::array<std::byte, kMadFrameBytes> bytes;
  emit(sample(), bytes);
  MadFrame back;
  ASSERT_TRUE(parse(bytes.data(), bytes.size(), back));
  EXPECT_TRUE(same(back, sample()));
}

TEST(MadFrame, of_another_length_or_version_is_none) {
  std::array<std::byte, kMadFrameBytes + 1> longer{};
  std::array<std::byte, kMadFrameBytes> bytes;
  emit(sample(), bytes);
  std::copy(bytes.begin(), bytes.end(), longer.begin());
  MadFrame back;
  EXPECT_FALSE(parse(longer.data(), longer.size(), back));
  EXPECT_FALSE(parse(bytes.data(), bytes.size() - 1, back));
  EXPECT_FALSE(parse(bytes.data(), 0, back));
  bytes[7] = std::byte{2};
  EXPECT_FALSE(parse(bytes.data(), bytes.size(), back));
}

TEST_F(MadSockets, carry_frames_to_the_slot_that_is_named) {
  const auto one = MadSocket::open(folder, 1, true);
  const auto two = MadSocket::open(folder, 2, true);
  const auto mute = MadSocket::open(folder, 3, false);
  EXPECT_EQ(mute->send(2, sample()), 0);
  MadFrame got;
  EXPECT_FALSE(one->receive(got));
  ASSERT_TRUE(two->receive(got));
  EXPECT_TRUE(same(got, sample()));
  EXPECT_FALSE(two->receive(got));
  EXPECT_EQ(one->slots().size(), 2U);
  EXPECT_TRUE(one->is_alive(2));
  EXPECT_FALSE(one->is_alive(3));
}

TEST_F(MadSockets, say_who_is_not_there_and_who_is_full) {
  const auto one = MadSocket::open(folder, 1, true);
  EXPECT_NE(one->send(9, sample()), 0);
  auto two = MadSocket::open(folder, 2, true);
  int error = 0;
  for (int i = 0; i < 100000 && error == 0; ++i) {
    error = one->send(2, sample());
  }
  EXPECT_EQ(error, EAGAIN);
  two.reset();
  EXPECT_NE(one->send(2, sample()), 0);
  EXPECT_FALSE(std::filesystem::exists(folder + "/2.mad"));
}

TEST_F(MadSockets, take_over_what_a_crash_left) {
  { std::filesystem::create_symlink("/nowhere", folder + "/4.mad"); }
  const auto four = MadSocket::open(folder, 4, true);
  EXPECT_EQ(four->send(4, sample()), 0);
  MadFrame got;
  EXPECT_TRUE(four->receive(got));
}

}  // namespace
}  // namespace ringbolt::link
