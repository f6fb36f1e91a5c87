#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "collective/element.h"
#include "collective/port.h"
#include "collective/schedule.h"

namespace ringbolt::collective {

/// Chunks of a lane that may be on their way or waiting at the receiver: it keeps memory for so many of each lane.
/// On a cable that is full both ways a chunk, and the word that it has been used, wait behind a quarter of a megabyte each.
inline constexpr uint32_t kLaneWindow = 16;
/// A receiver tells of so many used chunks at a time.
inline constexpr uint32_t kChunksPerWord = 4;

/// A program with what its execution looks up. Immutable once made, and shared by calls. Thread-safe.
class CompiledProgram {
 public:
  explicit CompiledProgram(Program program);

  const Program& program() const { return program_; }

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
  static const LaneEnd* find(const std::vector<LaneEnd>& ends, uint32_t peer, uint32_t lane);

  /// Steps that read what `step` writes.
  const std::vector<uint32_t>& dependents(uint32_t step) const { return dependents_[step]; }
  uint32_t n_chunks(uint32_t step) const { return n_chunks_[step]; }
  /// Index among incoming() of a step's lane source, and among outgoing() of its lane target; by place in the list.
  uint32_t incoming_of(uint32_t step, size_t source) const { return incoming_index_[step][source]; }
  uint32_t outgoing_of(uint32_t step, size_t target) const { return outgoing_index_[step][target]; }

 private:
  Program program_;
  std::vector<LaneEnd> incoming_;
  std::vector<LaneEnd> outgoing_;
  std::vector<std::vector<uint32_t>> dependents_;
  std::vector<uint32_t> n_chunks_;
  std::vector<std::vector<uint32_t>> incoming_index_;
  std::vector<std::vector<uint32_t>> outgoing_index_;
};

/// The memory of a call and what is done with it. Input and output may overlap in any way that the layouts of Problem
/// allow: a step that writes waits for those that still have to read the same bytes.
struct Operands {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  Type type = Type::uint8;
  Reduction reduction = Reduction::sum;
  uint32_t divisor = 0;  ///< where a step finishes: see reduce()
};

/// What became of a chunk or a word of credit that a peer sent.
enum class Taken : uint8_t {
  ok,
  no_such_lane,   ///< the peer follows another schedule
  wrong_length,   ///< likewise
  out_of_window,  ///< beyond what it may send, or the second of its number
};

/// One call under way: runs a program chunk by chunk, as chunks arrive. Knows neither time nor threads. Not
/// thread-safe: used under the port's lock.
class Execution {
 public:
  explicit Execution(std::shared_ptr<const CompiledProgram> program);

  /// Begins (again) as call number `call`. The operands' memory stays valid and untouched until is_done() or the
  /// execution is dropped.
  void start(uint32_t call, const Operands& operands, Port& port);
  /// A chunk from `peer`.
  Taken arrive(uint32_t peer, const ChunkTag& tag, Parcel parcel);
  /// `peer` has used so many chunks of our lane to it as tag.chunk says.
  Taken hear_used(uint32_t peer, const ChunkTag& tag);
  /// Does all that can be done now; whether that was anything.
  bool advance();
  bool is_done() const { return n_unfinished_ == 0; }
  const CompiledProgram& compiled() const { return *program_; }
  /// Gives back all parcels. What has been sent has been sent.
  void drop();

  /// Chunks of all steps done so far, and of all there are: for messages.
  uint64_t chunks_done() const;
  uint64_t chunks_total() const;
  /// A peer whose chunk a step waits for, for messages; kNoStep if none is waited for.
  uint32_t awaited_peer() const;

 private:
  struct Lane {  // to us
    Parcel waiting[kLaneWindow];
    uint32_t used = 0;
    uint32_t told = 0;
  };
  /// Step `reader` reads input bytes that lie where another step writes: what that one writes at its byte b, this one
  /// reads at its byte b + shift.
  struct Hazard {
    uint32_t reader = 0;
    int64_t shift = 0;
  };
  void find_hazards();
  bool may_fire(uint32_t step) const;
  bool may_write(uint32_t step, uint64_t offset, uint64_t length) const;
  bool is_written(const Source& source, uint64_t offset, uint64_t length) const;
  enum class Fired : uint8_t { yes, not_ready, no_room };
  Fired fire(uint32_t step);
  bool take_rooms(uint32_t step, uint32_t length);
  void put_result(uint32_t step, uint64_t offset, uint32_t length);
  void finish_chunk(uint32_t step);
  std::byte* address(Buffer buffer, uint64_t offset);

  std::shared_ptr<const CompiledProgram> program_;
  Operands operands_;
  Port* port_ = nullptr;
  uint32_t call_ = 0;
  std::vector<std::byte> scratch_;
  std::vector<uint32_t> next_chunk_;          // [step]
  std::vector<Lane> lanes_;                   // [incoming]
  std::vector<uint32_t> allowed_;             // [outgoing] chunks that may be sent
  std::vector<std::vector<Hazard>> hazards_;  // [step]; empty if input and output are apart
  std::optional<uintptr_t> hazards_of_;       // how far the output is from the input
  size_t n_waiting_ = 0;                      // parcels
  std::vector<uint64_t> ready_;               // a bit for each step that may have something to do
  std::vector<const std::byte*> sources_;
  std::vector<Port::Room> rooms_;
  size_t n_unfinished_ = 0;
};

}  // namespace ringbolt::collective
