#include "census.h"

#include <time.h>

#include <filesystem>
#include <fstream>

#include "allocations.h"
#include "board.h"

namespace ringbolt::test {
namespace {

int entries_of(const char* folder) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    (void)entry;
    ++count;
  }
  return count;
}

}  // namespace

Census take_census() {
  Census found{.threads = entries_of("/proc/self/task"), .descriptors = entries_of("/proc/self/fd") - 1};
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    ++found.mappings;
  }
  return found;
}

std::string growth_since(const Census& before, int spare) {
  const uint64_t begin = now_ns();
  while (true) {
    const Census now = take_census();
    if (now.threads <= before.threads && now.descriptors <= before.descriptors &&
        (now.mappings <= before.mappings + spare || !allocations_are_counted())) {
      return {};
    }
    if (seconds_since(begin) > 10) {
      return "threads " + std::to_string(before.threads) + " to " + std::to_string(now.threads) + ", descriptors " +
             std::to_string(before.descriptors) + " to " + std::to_string(now.descriptors) + ", mappings " +
             std::to_string(before.mappings) + " to " + std::to_string(now.mappings);
    }
    const timespec pause{.tv_sec = 0, .tv_nsec = 20'000'000};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace ringbolt::test
