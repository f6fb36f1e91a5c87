#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "collective/chunk_step.h"
#include "collective/compiled_program.h"
#include "collective/point_to_point.h"

namespace ringbolt::collective {

/// Chunks of a transfer that may be on their way or waiting at the receiver: it keeps memory for so many of each
/// transfer. On a cable that is full both ways a chunk, and the word that it has been used, wait behind a quarter of a
/// megabyte each.
inline constexpr uint32_t kTransferWindow = 16;
/// A receiver tells of so many used chunks at a time.
inline constexpr uint32_t kChunksPerWord = 4;

/// What became of a chunk or a word of credit that a peer sent.
enum class Taken : uint8_t {
  ok,
  no_such_transfer,  ///< the peer follows another schedule
  wrong_length,      ///< likewise
  out_of_window,     ///< beyond what it may send, or the second of its number
};

/// One call under way: runs a program chunk by chunk, as chunks arrive. Knows neither time nor threads. Not
/// thread-safe: used under the lock of its PointToPoint.
/// Owns its scratch memory and the parcels that wait. `p2p` outlives it or its drop(). Used again and again for calls
/// of one program: it allocates when it is made.
class Execution {
 public:
  explicit Execution(std::shared_ptr<const CompiledProgram> program);

  /// Begins (again) as call number `call`. The operands' memory stays valid and untouched until is_done() or the
  /// execution is dropped.
  void start(uint32_t call, const Operands& operands, PointToPoint& p2p);
  /// Likewise, of a program all of whose steps are one chunk, some of which are done: a bit for each. It has to advance
  /// to go on.
  void start_after(uint64_t done, uint32_t call, const Operands& operands, PointToPoint& p2p);
  /// A chunk from `peer`.
  /// Everything in `tag` and the parcel's length is the peer's word. What is not taken goes back by the parcel's
  /// destructor.
  Taken arrive(uint32_t peer, const ChunkTag& tag, Parcel parcel);
  /// `peer` has used so many chunks of our transfer to it as tag.chunk says.
  Taken hear_used(uint32_t peer, const ChunkTag& tag);
  /// Does all that can be done now; whether that was anything.
  bool advance();
  bool is_done() const { return n_unfinished_ == 0; }
  /// advance() has stopped though there is more to do at once: what needs no other rank may take long.
  bool wants_turn() const { return wants_turn_ && !is_done(); }
  const CompiledProgram& compiled() const { return *program_; }
  /// Gives back all parcels. What has been sent has been sent.
  void drop();

  /// Chunks of all steps done so far, and of all there are: for messages.
  uint64_t chunks_done() const;
  uint64_t chunks_total() const;
  /// A peer whose chunk a step waits for, for messages; kNoStep if none is waited for.
  uint32_t awaited_peer() const;
  /// Likewise one that has not taken what a step has sent it, so that the step may not go on.
  uint32_t full_peer() const;

 private:
  struct Transfer {  // to us
    uint32_t used = 0;
    uint32_t told = 0;
    // From `used` on: a chunk of a lower number is never taken again.
    std::array<Parcel, kTransferWindow> waiting;  // [chunk % kTransferWindow]
  };
  /// Step `reader` reads input bytes that lie where another step writes: what that one writes at its byte b, this one
  /// reads at its byte b + shift.
  struct Hazard {
    uint32_t reader = 0;
    // negative where the reader is behind
    int64_t shift = 0;
  };
  using Step = CompiledProgram::Step;
  void find_hazards();
  bool find_sources(const Step& step, uint32_t chunk, uint64_t offset, uint32_t length);
  bool may_write(uint32_t step, uint64_t offset, uint64_t length) const;
  bool is_written(const CompiledProgram::Source& source, uint64_t offset, uint64_t length) const;
  enum class Fired : uint8_t { yes, not_ready, no_slot };
  Fired fire(uint32_t step);
  void put_result(const Step& step, uint32_t chunk, uint64_t offset, uint32_t length);
  void finish_chunk(uint32_t step);
  std::byte* address(Buffer buffer, uint64_t offset) const { return buffers_[static_cast<size_t>(buffer)] + offset; }

  std::shared_ptr<const CompiledProgram> program_;
  Operands operands_;
  PointToPoint* p2p_ = nullptr;
  uint32_t call_ = 0;
  std::vector<std::byte> scratch_;
  std::array<std::byte*, 3> buffers_ = {};      // [Buffer]; of the input is only read
  std::vector<uint32_t> next_chunk_;            // [step]
  std::vector<Transfer> transfers_;             // [incoming]
  std::vector<uint32_t> allowed_;               // [outgoing] chunks that may be sent
  std::vector<std::vector<Hazard>> hazards_;    // [step]; empty if input and output are apart
  std::vector<std::vector<uint32_t>> held_up_;  // [step]: those that write where it reads; likewise
  std::optional<uintptr_t> hazards_of_;         // how far the output is from the input
  size_t n_waiting_ = 0;                        // parcels
  std::vector<uint64_t> ready_;                 // a bit for each step that may have something to do
  std::vector<const std::byte*> sources_;       // of the chunk that is being done
  std::vector<PointToPoint::Slot> slots_;       // likewise
  bool wants_turn_ = false;
  size_t n_unfinished_ = 0;
};

}  // namespace ringbolt::collective
