#include "sanitizer/wish.h"

#include <algorithm>

namespace ringbolt::sanitizer {
namespace {

constexpr uint32_t kAll = (1U << kKindNames.size()) - 1;
constexpr uint32_t kOn = kAll & ~(1U << static_cast<uint32_t>(Kind::portable));

}  // namespace

Wish parse_wish(std::string_view text) {
  Wish wish;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto* known = std::ranges::find(kKindNames, word);
    if (known != kKindNames.end()) {
      wish.kinds |= 1U << static_cast<uint32_t>(known - kKindNames.begin());
    } else if (word == "on" || word == "all") {
      wish.kinds |= word == "on" ? kOn : kAll;
    } else if (word != "off" && !word.empty()) {
      wish.unknown += (wish.unknown.empty() ? "" : ", ") + std::string(word);
    }
  }
  return wish;
}

}  // namespace ringbolt::sanitizer
