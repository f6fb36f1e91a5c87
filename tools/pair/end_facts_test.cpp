#include "pair/end_facts.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace ringbolt::tools::pair {
namespace {

namespace fs = std::filesystem;

EndFacts end(const char* library, double port_rate_gbps) { return {"client", "rdma0", library, port_rate_gbps}; }

TEST(LineRate, is_none_of_a_library_of_ringbolts_and_of_links_to_it) {
  std::string pattern = (fs::temp_directory_path() / "line-rate-XXXXXX").string();
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  const fs::path folder = pattern;
  fs::create_directories(folder / "lib/ringbolt");
  std::ofstream(folder / "lib/ringbolt/libibverbs.so.1").put('\n');
  fs::create_symlink("lib/ringbolt/libibverbs.so.1", folder / "by-link.so");
  std::ofstream(folder / "other.so").put('\n');
  EXPECT_TRUE(is_ringbolts((folder / "lib/ringbolt/libibverbs.so.1").string()));
  EXPECT_TRUE(is_ringbolts((folder / "by-link.so").string()));
  EXPECT_FALSE(is_ringbolts((folder / "other.so").string()));
  fs::remove_all(folder);
  EXPECT_TRUE(is_ringbolts("/opt/elsewhere/lib/ringbolt/libibverbs.so.1")) << "of another machine";
  EXPECT_FALSE(is_ringbolts(""));
}

TEST(LineRate, is_that_of_the_slowest_port_that_is_a_line) {
  constexpr const char* kSystem = "/usr/lib/libibverbs.so.1";
  constexpr const char* kOurs = "/x/lib/ringbolt/libibverbs.so.1";
  EXPECT_EQ(line_rate_gbps(-1, {end(kSystem, 100), end(kSystem, 40)}), 40);
  EXPECT_EQ(line_rate_gbps(-1, {end(kOurs, 10), end("/y.so", 40)}), 40);
  EXPECT_EQ(line_rate_gbps(-1, {end(kOurs, 10), end("/y.so", 0)}), 0);
}

TEST(LineRate, is_what_was_asked_for_if_anything_was) {
  EXPECT_EQ(line_rate_gbps(25, {end("/y.so", 40)}), 25);
  EXPECT_EQ(line_rate_gbps(0, {end("/y.so", 40)}), 0) << "judge nothing";
}

TEST(LineRate, itself_can_be_reached_and_nothing_is_above_none) {
  EXPECT_FALSE(is_above_line_rate(40, 40));
  EXPECT_TRUE(is_above_line_rate(40.001, 40));
  EXPECT_FALSE(is_above_line_rate(1e6, 0));
}

}  // namespace
}  // namespace ringbolt::tools::pair
