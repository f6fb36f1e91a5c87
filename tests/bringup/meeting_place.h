#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ringbolt::bringup::test {

/// A folder in which the ranks of a test leave what a side channel would carry. Not thread-safe.
class MeetingPlace {
 public:
  MeetingPlace(std::string folder, uint32_t rank, uint32_t n_ranks)
      : folder_(std::move(folder)), rank_(rank), n_ranks_(n_ranks) {}

  /// What each rank gave under `name`, by rank. Throws std::runtime_error after 30 s.
  std::vector<std::vector<std::byte>> all_gather(const std::string& name, std::span<const std::byte> own) const;
  /// The same for plain values.
  template <class T>
  std::vector<std::vector<T>> all_gather_values(const std::string& name, const std::vector<T>& own) const {
    std::vector<std::vector<T>> all;
    for (const auto& bytes : all_gather(name, std::as_bytes(std::span(own)))) {
      std::vector<T>& values = all.emplace_back(bytes.size() / sizeof(T));
      std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(values)).begin());
    }
    return all;
  }

 private:
  std::string folder_;
  uint32_t rank_;
  uint32_t n_ranks_;
};

}  // namespace ringbolt::bringup::test
