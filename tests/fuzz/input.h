#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace ringbolt::fuzz {

/// Takes values off the front of a fuzzer's input; zeros once it is used up. Not thread-safe.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(data, size) {}

  bool is_empty() const { return rest_.empty(); }

  template <class T>
  T take() {
    T value{};
    const size_t length = rest_.size() < sizeof value ? rest_.size() : sizeof value;
    if (length != 0) {
      std::memcpy(&value, rest_.data(), length);
    }
    rest_ = rest_.subspan(length);
    return value;
  }

  /// The text up to the next line end or the end of the input.
  std::string take_line() {
    const std::string_view text(reinterpret_cast<const char*>(rest_.data()), rest_.size());
    const std::string line(text.substr(0, text.find('\n')));
    rest_ = rest_.subspan(line.size() < rest_.size() ? line.size() + 1 : rest_.size());
    return line.substr(0, line.find('\0'));
  }

 private:
  std::span<const uint8_t> rest_;
};

inline std::string_view as_text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace ringbolt::fuzz
