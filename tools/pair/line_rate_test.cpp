#include "pair/line_rate.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace ringbolt::tools::pair {
namespace {

namespace fs = std::filesystem;

struct End {
  std::string library;
  double port_rate_gbps;
};

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
  EXPECT_EQ(line_rate_gbps(std::array{End{"/usr/lib/libibverbs.so.1", 100}, End{"/usr/lib/libibverbs.so.1", 40}}), 40);
  EXPECT_EQ(line_rate_gbps(std::array{End{"/x/lib/ringbolt/libibverbs.so.1", 10}, End{"/y.so", 40}}), 40);
  EXPECT_EQ(line_rate_gbps(std::array{End{"/x/lib/ringbolt/libibverbs.so.1", 10}, End{"/y.so", 0}}), 0);
}

}  // namespace
}  // namespace ringbolt::tools::pair
