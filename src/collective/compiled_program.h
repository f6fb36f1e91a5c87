#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collective/schedule.h"

namespace ringbolt::collective {

/// A program as its execution reads it: what the steps look up is found, and what they read lies side by side. Immutable,
/// and shared by calls; stays where it was made. Thread-safe.
class CompiledProgram {
 public:
  explicit CompiledProgram(const Program& program);
  CompiledProgram(const CompiledProgram&) = delete;
  CompiledProgram& operator=(const CompiledProgram&) = delete;

  struct Source {
    bool is_lane = false;
    // Of a lane: its index among incoming().
    uint32_t lane_index = 0;
    // Of memory: as in the program.
    Buffer buffer = Buffer::input;
    bool after_all = false;
    uint32_t after = kNoStep;
    uint64_t offset = 0;
    uint64_t written_from = 0;  ///< where in the buffer step `after` begins
  };
  /// A lane to another rank.
  struct Target {
    uint32_t lane_index = 0;  ///< among outgoing()
    uint32_t peer = 0;
    uint32_t lane = 0;
    std::span<const uint32_t> via;
  };
  struct Step {
    uint64_t bytes = 0;
    uint32_t chunk_bytes = 0;
    uint32_t n_chunks = 0;
    bool finishes = false;
    bool is_fed = false;     ///< by a lane
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
  /// Those that no lane feeds: all others begin when something arrives.
  const std::vector<uint32_t>& unfed() const { return unfed_; }

  /// An end of a lane: a step's source or target.
  struct LaneEnd {
    uint32_t peer = 0;
    uint32_t lane = 0;
    uint32_t step = 0;
    uint32_t index = 0;  ///< of the end among all of its kind
  };
  /// Ends of lanes to us, and from us, ascending by (peer, lane).
  const std::vector<LaneEnd>& incoming() const { return incoming_; }
  const std::vector<LaneEnd>& outgoing() const { return outgoing_; }
  /// Null if there is none.
  static const LaneEnd* find(const std::vector<LaneEnd>& ends, uint32_t peer, uint32_t lane) {
    if (ends.size() == 1) {  // as in short calls of two ranks
      return ends[0].peer == peer && ends[0].lane == lane ? ends.data() : nullptr;
    }
    return find_of_many(ends, peer, lane);
  }

 private:
  static const LaneEnd* find_of_many(const std::vector<LaneEnd>& ends, uint32_t peer, uint32_t lane);

  uint64_t scratch_bytes_;
  std::vector<Step> steps_;
  std::vector<uint32_t> unfed_;
  std::vector<Source> sources_;
  std::vector<Target> targets_;
  std::vector<uint32_t> vias_;
  std::vector<uint32_t> dependents_;
  std::vector<LaneEnd> incoming_;
  std::vector<LaneEnd> outgoing_;
};

}  // namespace ringbolt::collective
