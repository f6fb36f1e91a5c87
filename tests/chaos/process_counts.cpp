#include "process_counts.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace ringbolt::chaos {
namespace {

std::size_t entries(const char* folder) {
  const std::filesystem::directory_iterator listing(folder);
  return static_cast<std::size_t>(std::distance(begin(listing), end(listing)));
}

/// A line of /proc/self/maps is "from-to rwxs offset ..."; the fourth permission is `s` for a shared mapping.
bool is_shared(const std::string& line) {
  const std::size_t permissions = line.find(' ');
  return permissions != std::string::npos && line.size() > permissions + 4 && line[permissions + 4] == 's';
}

}  // namespace

ProcessCounts count_process() {
  ProcessCounts counts;
  counts.fds = entries("/proc/self/fd") - 1;  // without the descriptor of the listing itself
  counts.threads = entries("/proc/self/task");
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    ++counts.maps;
    counts.shared_maps += is_shared(line) ? 1U : 0U;
  }
  std::ifstream statm("/proc/self/statm");
  std::size_t total_pages = 0;
  std::size_t resident_pages = 0;
  statm >> total_pages >> resident_pages;
  counts.rss_kib = resident_pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / 1024;
  return counts;
}

ProcessCounts count_settled_process() {
  using std::chrono::milliseconds;
  using std::chrono::steady_clock;
  const auto deadline = steady_clock::now() + milliseconds(3000);
  ProcessCounts last = count_process();
  auto unchanged_since = steady_clock::now();
  while (steady_clock::now() < deadline && steady_clock::now() - unchanged_since < milliseconds(100)) {
    std::this_thread::sleep_for(milliseconds(10));  // time itself is meant: counts that stay as they are
    const ProcessCounts now = count_process();
    if (!now.holds_as_much_as(last)) unchanged_since = steady_clock::now();
    last = now;
  }
  return last;
}

}  // namespace ringbolt::chaos
