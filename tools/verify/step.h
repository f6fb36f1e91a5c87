#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "json_text.h"
#include "pair/transport.h"

namespace ringbolt::tools::verify {

enum class Mode : uint8_t { kStream, kWrite, kRead, kAtomic, kChurn };
enum class Order : uint8_t { kStrict, kAny };
inline constexpr std::array kModes{Mode::kStream, Mode::kWrite, Mode::kRead, Mode::kAtomic, Mode::kChurn};
inline constexpr std::array kOrders{Order::kStrict, Order::kAny};

const char* text_of(Mode mode);    ///< "stream"
const char* text_of(Order order);  ///< "strict"

/// Depths of some devices count frames of so many bytes, and there a message fits only a receive of as many frames.
inline constexpr uint64_t kFrameBytes = 4096;
/// Of a message: below 2^31, the most that RC and UC carry (InfiniBand Architecture Specification), and a limit of
/// memory.
inline constexpr uint64_t kMostBytes = uint64_t{1} << 30U;

/// One thing that both ends do together. The client decides, the server gets it as a text.
struct Step {
  Mode mode = Mode::kStream;
  pair::Transport transport = pair::Transport::kRc;
  Order order = Order::kStrict;
  bool is_bidirectional = false;  ///< of streams
  bool is_reversed = false;       ///< the server initiates
  bool counts_frames = false;     ///< all messages of a queue pair have the same number of frames
  bool has_read_back = false;     ///< of write: the initiator READs what it has written
  uint32_t queue_pairs = 1;
  uint32_t epoch = 1;  ///< of its first queue pairs; never one that was before
  uint64_t seed = 1;
  uint64_t least_bytes = 1;
  uint64_t most_bytes = 1;
  uint64_t count = 0;          ///< messages, blocks, operations of each queue pair, or rounds; 0: the duration says
  uint64_t duration_ms = 0;    ///< 0: the count says
  uint32_t send_depth = 1;     ///< of each queue pair, under way at most
  uint32_t receive_depth = 1;  ///< messages that the receiver has room for
  uint32_t loss_ppm = 0;       ///< of a million messages so many may be lost
  friend bool operator==(const Step&, const Step&) = default;

  /// Whether an end of ours would ask for it.
  /// pair::value_in() asks it of what another end tells, before memory is taken for it or a mode chosen by it.
  bool makes_sense() const;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Step, mode, transport, order, is_bidirectional, is_reversed, counts_frames,
                                   has_read_back, queue_pairs, epoch, seed, least_bytes, most_bytes, count, duration_ms,
                                   send_depth, receive_depth, loss_ppm)

/// "RC stream": what it is, for people.
std::string title_of(const Step& step);

struct SizeRange {
  uint64_t least = 0;
  uint64_t most = 0;
  friend bool operator==(const SizeRange&, const SizeRange&) = default;
};
/// Of the messages of one queue pair. Thread-safe.
SizeRange sizes_of(const Step& step, uint32_t queue_pair);
/// Of one message: both ends compute it, from the seed. Small ones are as frequent as large ones. Thread-safe.
uint32_t size_of(const Step& step, uint32_t queue_pair, uint64_t sequence);
/// Of what the client sends; the server's messages have another.
inline uint64_t seed_of(const Step& step, bool is_of_client) { return is_of_client ? step.seed : ~step.seed; }

/// A piece of the target's memory.
struct Block {
  uint64_t sequence = 0;  ///< of the blocks of its queue pair, over all rounds
  uint64_t offset = 0;    ///< in the area
  uint32_t length = 0;
};

/// Where a round writes or reads on one queue pair: up to `most` blocks that don't overlap, at offsets of every kind,
/// in the order of their offsets. Both ends compute it. `first`: the sequence number of the first. Thread-safe.
/// Blocks lie within [0, area_bytes).
std::vector<Block> blocks_of(const Step& step, uint32_t queue_pair, uint64_t first, uint32_t most, uint64_t area_bytes);

/// How large an area has to be for that, in bytes.
uint64_t area_bytes_of(const Step& step);

}  // namespace ringbolt::tools::verify
