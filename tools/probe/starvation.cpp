#include "probe/starvation.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace ringbolt::tools {

uint64_t starved_ns() {
  uint64_t longest = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator task("/proc/self/task", error), end; !error && task != end;
       task.increment(error)) {
    std::ifstream file(task->path() / "schedstat");
    uint64_t ran = 0;
    uint64_t waited = 0;
    if (file >> ran >> waited) {
      longest = std::max(longest, waited);
    }
  }
  return longest;
}

}  // namespace ringbolt::tools
