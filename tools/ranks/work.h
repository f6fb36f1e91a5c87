#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ranks/element.h"
#include "ringbolt/group.h"

namespace ringbolt::tools::ranks {

enum class Collective : uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_gatherv,
  broadcast,
  reduce,
  gather,
  scatter,
  all_to_all,
  all_to_allv,
  send_recv,  ///< each rank to the next one, the last to rank 0
  barrier,
};
inline constexpr uint32_t kCollectives = 12;

/// "all_reduce", and back.
std::string_view text(Collective collective);
std::optional<Collective> collective_of(std::string_view text);

bool reduces(Collective collective);
bool has_root(Collective collective);
/// Whether its result may lie where its input was, as group.h says. Of broadcast it always does.
bool can_be_in_place(Collective collective);
/// Whether the name of an algorithm means something to it: messages have none.
bool has_algorithms(Collective collective);

/// One call of a group with its data: what each rank puts in, and what each must get. A value, equal on all ranks.
struct Work {
  Collective collective = Collective::all_reduce;
  Data data;
  size_t count = 0;  ///< as group.h counts; of those with different counts, their mean
  uint32_t root = 0;
  uint32_t n_ranks = 1;
  bool is_in_place = false;

  /// "all_reduce of 7 float32, sum, in place".
  std::string text() const;
};

/// The elements that rank `from` sends to rank `to` of all_to_allv: some none, some twice as many.
size_t pair_count(const Work& work, uint32_t from, uint32_t to);
/// Those of rank `rank` of all_gatherv.
size_t share_count(const Work& work, uint32_t rank);

/// Where a rank's data lie, in bytes: in one memory if in place, else in two. Lengths of 0: it has none.
struct Places {
  size_t input_bytes = 0;
  size_t output_bytes = 0;
  bool is_shared = false;  ///< one memory
  size_t input_at = 0;     ///< in the memory
  size_t output_at = 0;

  size_t memory_bytes() const;  ///< of the one, or of the output's
};
Places places_of(const Work& work, uint32_t rank);

/// Writes what rank `rank` puts in.
void write_input(const Work& work, uint32_t rank, std::span<std::byte> input);
/// Writes what rank `rank` must get, [output_bytes] long.
void write_expected(const Work& work, uint32_t rank, std::span<std::byte> output);

/// Makes the call and waits for it. A collective call.
Status call(Group& group, const Work& work, const std::byte* input, std::byte* output, const CallOptions& options);

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
