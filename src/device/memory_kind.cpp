#include "device/memory_kind.h"

#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

namespace ringbolt::device {

bool is_on_heap_or_stack(uint64_t address, uint64_t length) {
  constexpr int kHexadecimal = 16;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (!line.ends_with("[heap]") && !line.ends_with("[stack]")) {
      continue;
    }
    const char* const end_of_line = line.data() + line.size();
    uint64_t first = 0;
    uint64_t end = 0;
    const auto [dash, error] = std::from_chars(line.data(), end_of_line, first, kHexadecimal);
    if (error == std::errc{} && dash != end_of_line &&
        std::from_chars(dash + 1, end_of_line, end, kHexadecimal).ec == std::errc{} && address < end &&
        first < address + length) {
      return true;
    }
  }
  return false;
}

}  // namespace ringbolt::device
