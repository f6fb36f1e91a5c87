#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ringbolt/group.h"

namespace ringbolt::test {

/// A call that a test asks for. Data are 32-bit numbers that tell rank, place and turn, so that what is shifted,
/// doubled or of another turn is noticed.
struct Work {
  std::string operation = "all_reduce";
  size_t count = 1000;
  Type type = Type::int32;
  Reduction reduction = Reduction::sum;
  uint32_t root = 0;
  uint32_t peer = 0;
  CallOptions options = {};
};

/// Makes one call after the other and checks what comes out.
class Workload {
 public:
  Workload(Group& group, const Work& work);
  /// Call number `turn`, which is part of the data.
  Status run(uint32_t turn);
  /// Whether the outputs of the last call are what they should be; true for types of other sizes than 4 bytes.
  bool is_exact() const;

 private:
  uint32_t input_at(uint32_t rank, size_t i) const {
    return static_cast<uint32_t>((rank + 1) * 1'000'003U + i * 7U + turn_ * 101U);
  }
  uint32_t sum_at(size_t i) const;
  bool is_output(const std::vector<uint32_t>& output, size_t offset, uint32_t rank, size_t from, size_t n) const;
  bool is_sum(size_t from, size_t n) const;

  Group& group_;
  Work work_;
  uint32_t turn_ = 0;
  std::vector<uint32_t> in_;
  std::vector<uint32_t> out_;
};

/// Errors: throws std::invalid_argument for a name that is unknown.
Type type_of(const std::string& name);
Reduction reduction_of(const std::string& name);

}  // namespace ringbolt::test
