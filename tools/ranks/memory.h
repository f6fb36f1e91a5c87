#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ringbolt::tools::ranks {

/// Bytes between two guards, to see who writes beside them. Not thread-safe.
class GuardedMemory {
 public:
  static constexpr size_t kGuardBytes = 64;
  static constexpr std::byte kGuard{0xA5};
  /// As a float32 a NaN that no sum of numbers gives.
  static constexpr uint32_t kCanary = 0x7FC0DEAD;

  explicit GuardedMemory(size_t length_bytes);

  std::span<std::byte> bytes() { return {all_.data() + kGuardBytes, length_bytes_}; }
  std::span<const std::byte> bytes() const { return {all_.data() + kGuardBytes, length_bytes_}; }
  /// Makes it a memory of so many bytes, with whole guards. What it holds is undefined.
  void resize(size_t length_bytes);
  /// Writes the canary over all of it.
  void fill_with_canary();
  bool is_guard_intact() const;

 private:
  size_t length_bytes_ = 0;
  std::vector<std::byte> all_;
};

/// The first element of `element_bytes` that differs; both are equally long. None: the number of elements.
size_t first_difference(std::span<const std::byte> got, std::span<const std::byte> want, size_t element_bytes);

}  // namespace ringbolt::tools::ranks
