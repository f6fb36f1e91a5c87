#include "census.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "deadline.h"

namespace ringbolt::scale {
namespace {

size_t entries(const char* folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) {
    ++count;
  }
  return count;
}

size_t lines(const char* file) {
  std::ifstream in(file);
  return static_cast<size_t>(std::count(std::istreambuf_iterator<char>(in), {}, '\n'));
}

size_t resident_kib() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("VmRSS:")) {
      return std::stoul(line.substr(6));
    }
  }
  return 0;
}

}  // namespace

Census take_census() {
  // The descriptor of the folder being read is counted every time alike.
  return {entries("/proc/self/fd"), entries("/proc/self/task"), lines("/proc/self/maps"),
          resident_kib()};
}

std::string describe(const Census& census) {
  return std::to_string(census.descriptors) + " descriptors, " + std::to_string(census.threads) +
         " threads, " + std::to_string(census.mappings) + " mappings, " +
         std::to_string(census.resident_kib) + " KiB";
}

void expect_no_growth(const Census& before, size_t spare_mappings, size_t spare_kib) {
  Census now;
  conformance::wait_until([&] {
    now = take_census();
    return now.threads <= before.threads && now.descriptors <= before.descriptors;
  });
  const std::string text = "before: " + describe(before) + "; now: " + describe(now);
  EXPECT_LE(now.descriptors, before.descriptors) << text;
  EXPECT_LE(now.threads, before.threads) << text;
  if (!kIsThreadSanitized) {
    EXPECT_LE(now.mappings, before.mappings + spare_mappings) << text;
  }
  if (!kIsSanitized) {
    EXPECT_LE(now.resident_kib, before.resident_kib + spare_kib) << text;
  }
}

}  // namespace ringbolt::scale
