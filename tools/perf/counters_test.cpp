#include "perf/counters.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace ringbolt::tools::perf {
namespace {

class Counters : public testing::Test {
 protected:
  Counters() { std::filesystem::create_directories(folder_); }
  ~Counters() override { std::filesystem::remove_all(root_); }
  void write(const char* name, const char* text) { std::ofstream(folder_ / name) << text; }

  const std::filesystem::path root_ =
      std::filesystem::temp_directory_path() / ("counters_test." + std::to_string(::getpid()));
  const std::filesystem::path folder_ = root_ / "sys/class/infiniband/rdma_en2/ports/1/counters";
};

TEST_F(Counters, count_words_of_four_bytes) {
  write("port_xmit_data", "10\n");
  write("port_rcv_data", "3\n");
  EXPECT_EQ(read_port_counters(root_, "rdma_en2", 1), (PortCounters{40, 12}));
}

TEST_F(Counters, that_are_missing_or_no_numbers_are_not_measured) {
  EXPECT_FALSE(read_port_counters(root_, "rdma_en2", 1));
  write("port_xmit_data", "10\n");
  EXPECT_FALSE(read_port_counters(root_, "rdma_en2", 1));
  write("port_rcv_data", "many\n");
  EXPECT_FALSE(read_port_counters(root_, "rdma_en2", 1));
  EXPECT_FALSE(read_port_counters(root_, "other", 1));
}

TEST(CountedSince, is_the_difference_or_all_since_a_reset) {
  EXPECT_EQ(counted_since(40, 100), 60U);
  EXPECT_EQ(counted_since(40, 40), 0U);
  EXPECT_EQ(counted_since(40, 12), 12U);
  EXPECT_EQ(counted_since(40, 0), 0U);
}

}  // namespace
}  // namespace ringbolt::tools::perf
