#include "base/printable.h"

#include <algorithm>
#include <utility>

namespace ringbolt::base {

std::string printable(std::string text, char instead, bool keeps_lines) {
  const auto is_control = [keeps_lines](char one) {
    return (static_cast<unsigned char>(one) < ' ' && !(keeps_lines && one == '\n')) || one == '\x7f';
  };
  std::ranges::replace_if(text, is_control, instead);
  for (size_t i = 1; i < text.size(); ++i) {
    const auto second = static_cast<unsigned char>(text[i]);
    if (text[i - 1] == '\xc2' && second >= 0x80 && second < 0xa0) {
      text[i - 1] = text[i] = instead;
    }
  }
  return text;
}

}  // namespace ringbolt::base
