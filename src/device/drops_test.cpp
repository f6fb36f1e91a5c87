#include "device/drops.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

namespace ringbolt::device {
namespace {

TEST(Drops, counts_each_reason_of_each_port) {
  Drops drops;
  drops.add_port(7, "rdma_a");
  drops.add_port(9, "rdma_b");
  drops.add_port(7, "rdma_again");
  drops.count(7, Drop::bad_checksum);
  drops.count(9, Drop::bad_checksum);
  drops.count(9, Drop::bad_checksum);
  drops.count(9, Drop::no_receive);
  drops.count(8, Drop::inbox_full);
  const auto ports = drops.read();
  ASSERT_EQ(ports.size(), 3U);
  const auto of = [](const Drops::Port& port, Drop why) { return port.counts[static_cast<size_t>(why)]; };
  EXPECT_EQ(ports[0].name, "network");
  EXPECT_EQ(of(ports[0], Drop::inbox_full), 1U);
  EXPECT_EQ(ports[1].name, "rdma_a");
  EXPECT_EQ(of(ports[1], Drop::bad_checksum), 1U);
  EXPECT_EQ(of(ports[2], Drop::bad_checksum), 2U);
  EXPECT_EQ(of(ports[2], Drop::no_receive), 1U);
  EXPECT_EQ(of(ports[2], Drop::inbox_full), 0U);
}

TEST(Drops, loses_no_count_between_threads) {
  Drops drops;
  constexpr uint64_t kEach = 100'000;
  std::thread other([&] {
    for (uint64_t i = 0; i < kEach; ++i) {
      drops.count(1, Drop::wrong_source);
    }
  });
  for (uint64_t i = 0; i < kEach; ++i) {
    drops.count(1, Drop::wrong_source);
    if (i == kEach / 2) {
      drops.add_port(2, "rdma_late");
    }
  }
  other.join();
  EXPECT_EQ(drops.read()[0].counts[static_cast<size_t>(Drop::wrong_source)], 2 * kEach);
}

TEST(Drops, says_the_first_of_a_kind_and_then_one_a_second) {
  setenv("RINGBOLT_LOG", "debug", 1);
  Drops drops;
  unsetenv("RINGBOLT_LOG");
  drops.add_port(7, "rdma_a");
  ::testing::internal::CaptureStderr();
  drops.count(7, Drop::bad_checksum);
  drops.count(7, Drop::bad_checksum);
  drops.count(7, Drop::wrong_qkey);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "ringbolt: rdma_a: dropped a packet: a wrong checksum (1 so far)\n"
            "ringbolt: rdma_a: dropped a packet: a wrong Q_Key (1 so far)\n");
}

TEST(Drops, are_silent_unless_asked) {
  unsetenv("RINGBOLT_LOG");
  Drops drops;
  ::testing::internal::CaptureStderr();
  drops.count(7, Drop::bad_checksum);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace ringbolt::device
