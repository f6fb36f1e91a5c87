#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ringbolt::collective {

/// A collective as data: what each rank receives, adds up, keeps and sends on. Builders make it from a graph and sizes,
/// one executor runs it over cables, one simulator runs it over a model of them. No algorithm has code of its own in
/// either.
///
/// A rank's part is a list of steps. A step moves `bytes` in chunks: for every chunk, as soon as all its sources have
/// it, the sources are reduced in the order in which they are listed, and the result goes to all targets. Steps work at
/// the same time, each on its own chunks, so a chain of steps over several ranks is a pipeline. What joins steps:
///
/// * between ranks, a transfer: exactly the step's bytes, first in, first out, from one step to one other. A transfer
/// is
///   known by (sending rank, receiving rank, number), and both its ends have the same bytes and chunk_bytes.
/// * within a rank, bytes of a buffer that another step writes: a source says after which step.
///
/// Any number of transfers may be open at a time; each holds a few chunks that have been sent and not yet used. So a
/// schedule must not need more than one chunk in any transfer to come to its end: chunk i of a step may depend on
/// chunks up to i of others, not on later ones, unless the other is complete before (`after_all`).

/// The memory of a rank that steps read and write.
enum class Buffer : uint8_t {
  input,    ///< what the caller passes; only read. The same as output if the call is in place
  output,   ///< what the caller gets
  scratch,  ///< the call's own, Program::scratch_bytes long
};

inline constexpr uint32_t kNoStep = UINT32_MAX;

/// Where a chunk of a step comes from.
struct Source {
  enum class Kind : uint8_t { local, transfer };
  Kind kind = Kind::local;
  // Of Kind::local: bytes [offset, offset + step bytes) of the buffer.
  Buffer buffer = Buffer::input;
  uint64_t offset = 0;
  /// The earlier step of this rank that writes these bytes, or kNoStep. Chunks follow one another: a byte may be read
  /// once that step has written it; of a step without a local target, once it has sent it.
  uint32_t after = kNoStep;
  bool after_all = false;  ///< wait for all of that step, not for the bytes alone
  // Of Kind::transfer:
  uint32_t peer = 0;
  uint32_t transfer = 0;
  friend bool operator==(const Source&, const Source&) = default;
};

/// Where the result of a chunk goes.
struct Target {
  enum class Kind : uint8_t { local, transfer };
  Kind kind = Kind::local;
  // Of Kind::local; a step has at most one such target, and never to Buffer::input.
  Buffer buffer = Buffer::output;
  uint64_t offset = 0;
  // Of Kind::transfer:
  uint32_t peer = 0;
  uint32_t transfer = 0;
  /// The ranks between here and `peer`, in order; empty for a neighbour. The fabric follows it while all its cables
  /// live, and finds another way otherwise.
  std::vector<uint32_t> via;
  friend bool operator==(const Target&, const Target&) = default;
};

struct Step {
  uint64_t bytes = 0;           ///< 0: one empty chunk, which still waits for its sources and reaches its targets
  uint32_t chunk_bytes = 0;     ///< whole elements; the last chunk may be shorter. At most Limits::most_chunk_bytes
  std::vector<Source> sources;  ///< at least one; several are reduced by the call's operation
  std::vector<Target> targets;  ///< at least one
  /// The operation's last touch is put on the result here (division by the number of ranks of avg; 16-bit types that
  /// were kept as they are have none). Exactly one step does it for each element that ends in an output.
  bool finishes = false;
  friend bool operator==(const Step&, const Step&) = default;
};

/// What one rank does. Steps that can go on at the same moment go in the order of the list.
struct Program {
  /// Made by the execution; what it holds at first is undefined.
  uint64_t scratch_bytes = 0;
  std::vector<Step> steps;
  friend bool operator==(const Program&, const Program&) = default;
};

/// What all ranks do.
struct Schedule {
  std::string name;  ///< "direct", "ring", "trees": what --algorithm takes and --explain prints
  /// Every element of every output is ((x0 op x1) op x2) ... in the order of ranks, whatever the graph: all schedules
  /// with this mark give bitwise the same result.
  bool is_rank_ordered = false;
  std::vector<Program> programs;  ///< [rank]
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

}  // namespace ringbolt::collective
