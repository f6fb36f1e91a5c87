#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collective/schedule.h"

namespace ringbolt::collective {

/// A program as its execution reads it: what the steps look up is found, and what they read lies side by side.
/// Immutable, and shared by calls; stays where it was made. Thread-safe. Its spans are of its own lists, so it is
/// neither copied nor moved. Asserts what check() would prove of the structure.
class CompiledProgram {
 public:
  explicit CompiledProgram(const Program& program);
  CompiledProgram(const CompiledProgram&) = delete;
  CompiledProgram& operator=(const CompiledProgram&) = delete;

  struct Source {
    bool is_transfer = false;
    // Of a transfer: its index among incoming().
    uint32_t transfer_index = 0;
    // Of memory: as in the program.
    Buffer buffer = Buffer::input;
    bool after_all = false;
    uint32_t after = kNoStep;
    uint64_t offset = 0;
    uint64_t written_from = 0;  ///< where in the buffer step `after` begins
  };
  /// A transfer to another rank.
  struct Target {
    uint32_t transfer_index = 0;  ///< among outgoing()
    uint32_t peer = 0;
    uint32_t transfer = 0;
    std::span<const uint32_t> via;
  };
  struct Step {
    uint64_t bytes = 0;
    uint32_t chunk_bytes = 0;
    uint32_t n_chunks = 0;
    bool finishes = false;
    bool is_fed = false;     ///< by a transfer
    bool has_local = false;  ///< a target in memory:
    Buffer local_buffer = Buffer::output;
    uint64_t local_offset = 0;
    std::span<const Source> sources;
    std::span<const Target> targets;
    std::span<const uint32_t> dependents;  ///< steps that read what this one writes

    /// Its bytes before chunk `chunk`.
    uint64_t bytes_before(uint32_t chunk) const {
      const uint64_t before = uint64_t{chunk} * chunk_bytes;
      return before < bytes ? before : bytes;
    }
  };
  const std::vector<Step>& steps() const { return steps_; }
  uint64_t scratch_bytes() const { return scratch_bytes_; }
  /// Those that no transfer feeds: all others begin when something arrives.
  const std::vector<uint32_t>& unfed() const { return unfed_; }

  /// An end of a transfer: a step's source or target.
  struct TransferEnd {
    uint32_t peer = 0;
    uint32_t transfer = 0;
    uint32_t step = 0;
    uint32_t index = 0;  ///< of the end among all of its kind
  };
  /// Ends of transfers to us, and from us, ascending by (peer, transfer).
  const std::vector<TransferEnd>& incoming() const { return incoming_; }
  const std::vector<TransferEnd>& outgoing() const { return outgoing_; }
  /// Null if there is none.
  static const TransferEnd* find(const std::vector<TransferEnd>& ends, uint32_t peer, uint32_t transfer) {
    if (ends.size() == 1) {  // as in short calls of two ranks
      return ends[0].peer == peer && ends[0].transfer == transfer ? ends.data() : nullptr;
    }
    return find_of_many(ends, peer, transfer);
  }

 private:
  static const TransferEnd* find_of_many(const std::vector<TransferEnd>& ends, uint32_t peer, uint32_t transfer);

  uint64_t scratch_bytes_;
  std::vector<Step> steps_;
  std::vector<uint32_t> unfed_;
  std::vector<Source> sources_;
  std::vector<Target> targets_;
  std::vector<uint32_t> vias_;
  std::vector<uint32_t> dependents_;
  std::vector<TransferEnd> incoming_;
  std::vector<TransferEnd> outgoing_;
};

}  // namespace ringbolt::collective
