#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collective/chunk_step.h"
#include "collective/compiled_program.h"
#include "collective/executor.h"
#include "collective/point_to_point.h"

namespace ringbolt::collective {

/// Runs a program of few steps, each of which is one short chunk: what an Execution does, without windows, chunk
/// numbers and words of credit, which such a program has no use for. What a step waits for is two words of bits. It
/// knows no errors either: whatever it does not await, it leaves to an Execution, which goes on where this one stands.
/// Not thread-safe: used under the lock of its PointToPoint.
/// Owns its scratch memory and the parcels that wait (without Parcel, whose destructor costs). Neither locks nor
/// allocates once it is made.
class ShortExecution {
 public:
  static constexpr uint32_t kMostSteps = 64;      ///< a bit each
  static constexpr uint32_t kMostTransfers = 64;  ///< to us; likewise

  /// Whether it can run such a program: a step has up to `most_bytes`.
  static bool fits(const CompiledProgram& program, uint32_t most_bytes);
  explicit ShortExecution(std::shared_ptr<const CompiledProgram> program);
  ~ShortExecution() { drop(); }
  ShortExecution(const ShortExecution&) = delete;
  ShortExecution& operator=(const ShortExecution&) = delete;

  /// Begins (again) as call number `call`. See Execution::start().
  void start(uint32_t call, const Operands& operands, PointToPoint& p2p);
  /// Does all that can be done now. False: there is no slot for a chunk.
  [[nodiscard]] bool advance();
  /// A chunk from `peer`, which is used at once if it can be. False if it is none that is awaited: then nothing has
  /// been done with it.
  [[nodiscard]] bool arrive(uint32_t peer, const ChunkTag& tag, uint64_t parcel, std::span<const std::byte> bytes);
  bool is_done() const { return pending_ == 0; }
  /// Good as long as this.
  const std::shared_ptr<const CompiledProgram>& program() const { return program_; }
  /// Another execution of the same program goes on: with what is done, and with what has come. This one has ended.
  /// The caller lets `to` advance.
  void hand_over(Execution& to);

 private:
  struct Awaited {  // by a step
    const CompiledProgram::Step* step = nullptr;
    uint64_t transfers = 0;
    uint64_t steps = 0;         // whose results it reads
    uint64_t readers = 0;       // of input bytes that it writes, as input and output lie now
    bool is_forwarded = false;  // it sends one source's bytes to one rank, and that is all
  };
  struct Waiting {  // a chunk that has come: a Parcel without its owner, which is this
    uint64_t parcel = 0;
    std::span<const std::byte> bytes;
  };
  using Step = CompiledProgram::Step;
  void find_readers();
  void drop();
  bool is_ready(uint32_t step) const {
    const Awaited& awaited = awaited_[step];
    return ((awaited.transfers & ~arrived_) | ((awaited.steps | awaited.readers) & pending_)) == 0;
  }
  bool fire(uint32_t step);
  const std::byte* bytes_of(const CompiledProgram::Source& source) const {
    return source.is_transfer ? waiting_[source.transfer_index].bytes.data() : address(source.buffer, source.offset);
  }
  std::byte* address(Buffer buffer, uint64_t offset) const { return buffers_[static_cast<size_t>(buffer)] + offset; }

  std::shared_ptr<const CompiledProgram> program_;
  std::vector<Awaited> awaited_;  // [step]
  std::vector<std::byte> scratch_;
  std::vector<Waiting> waiting_;           // [incoming]: see waiting_transfers_
  std::vector<const std::byte*> sources_;  // of the step that is being done
  std::vector<PointToPoint::Slot> slots_;  // likewise
  std::optional<uintptr_t> readers_of_;    // how far the output is from the input
  uint64_t all_;                           // steps
  uint64_t unfed_ = 0;                     // of these, those that await no transfer
  Operands operands_;
  PointToPoint* p2p_ = nullptr;
  uint32_t call_ = 0;
  std::array<std::byte*, 3> buffers_ = {};  // [Buffer]; of the input is only read
  uint64_t pending_ = 0;                    // steps that are not done
  uint64_t arrived_ = 0;                    // transfers, used or not
  uint64_t waiting_transfers_ = 0;          // whose chunks have come and are not used
  uint64_t fed_ = 0;                        // steps that have got a chunk which they could not use at once
};

}  // namespace ringbolt::collective
