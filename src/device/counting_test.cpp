// What protocol engines have counted shows in the port's counters, each once.
#include "device/counting.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace ringbolt::device {
namespace {

TEST(Counting, takes_over_what_is_new_of_naks_by_strangers) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("counting-" + std::to_string(getpid()) + ".counters");
  const auto page = cluster::CounterPage::open(path);
  CountingCell cell(page);
  transport::RequesterCounters now;
  transport::RequesterCounters told;
  now.sequence_naks = 2;
  now.implied_naks = 3;
  count_news(now, told, cell);
  now.sequence_naks = 6;
  count_news(now, told, cell);
  const auto sum = cluster::read_counters(path);
  ASSERT_TRUE(sum);
  const auto value = [&](const char* name) {
    return ringbolt_counter_value(ringbolt_find_counter("hw_counters", name), &*sum);
  };
  EXPECT_EQ(value("packet_seq_err"), 6U);
  EXPECT_EQ(value("rcvd_seq_err"), 6U);
  EXPECT_EQ(value("implied_nak_seq_err"), 3U);
  EXPECT_EQ(value("completer_retry_err"), 0U);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace ringbolt::device
