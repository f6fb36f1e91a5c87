#include "memory_use.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace ringbolt::bench {

int64_t resident_bytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string line; std::getline(rollup, line);) {
    if (line.starts_with("Rss:")) {
      constexpr int64_t kKibibyte = 1024;
      return std::stoll(line.substr(4)) * kKibibyte;
    }
  }
  throw std::runtime_error("/proc/self/smaps_rollup has no Rss line; the kernel must be 4.14 or later");
}

std::map<uint64_t, uint64_t> mapped_segments() {
  std::map<uint64_t, uint64_t> segments;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string range, mode, offset, device, inode, path;
    words >> range >> mode >> offset >> device >> inode >> path;
    if (!path.starts_with("/memfd:")) {
      continue;
    }
    const size_t dash = range.find('-');
    const uint64_t first = std::stoull(range.substr(0, dash), nullptr, 16);
    const uint64_t end = std::stoull(range.substr(dash + 1), nullptr, 16);
    uint64_t& bytes = segments[std::stoull(inode)];
    bytes = std::max<uint64_t>(bytes, std::stoull(offset, nullptr, 16) + end - first);
  }
  return segments;
}

int64_t cpu_time_us() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  constexpr int64_t kMicroseconds = 1'000'000;
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * kMicroseconds + usage.ru_utime.tv_usec +
         usage.ru_stime.tv_usec;
}

}  // namespace ringbolt::bench
