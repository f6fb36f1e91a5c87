#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/circle.h"

namespace ringbolt::mesh {

/// Bytes of one stage of bring-up, written and read in the same order; little-endian.
class Writer {
 public:
  template <class T>
  void put(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) {
      bytes_.push_back(static_cast<std::byte>(static_cast<uint64_t>(value) >> (8 * i)));
    }
  }
  void put_bytes(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}
  /// 0 beyond the end; is_sound() is false from then on.
  template <class T>
  T take() {
    if (left_.size() < sizeof(T)) {
      is_sound_ = false;
      return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      value |= static_cast<uint64_t>(left_[i]) << (8 * i);
    }
    left_ = left_.subspan(sizeof(T));
    return static_cast<T>(value);
  }
  std::span<const std::byte> rest() const { return left_; }
  bool is_at_end() const { return left_.empty(); }
  bool is_sound() const { return is_sound_; }

 private:
  std::span<const std::byte> left_;
  bool is_sound_ = true;
};

/// One stage of bring-up: every rank gives its share, or the words that say why it can't, and gets all shares. If any
/// rank can't, or leaves, all throw JoinError with those words.
std::vector<std::vector<std::byte>> share(bootstrap::Circle& circle, std::span<const std::byte> mine,
                                          const std::string& trouble, uint64_t deadline_ns);

}  // namespace ringbolt::mesh
