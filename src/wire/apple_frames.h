#pragma once

// Hot path: no allocation, clock or I/O per frame.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

/// The payload framing of Apple's RDMA service over Thunderbolt. Frames carry no header: the hop says which queue pair
/// they are for, and marks of the ring, beside the bytes, where a message starts and ends. Rules and source:
/// docs/formats/thunderbolt.md.
namespace ringbolt::wire {

inline constexpr size_t kAppleFrameBytes = 4096;

struct AppleFrame {
  std::span<const std::byte> bytes;  ///< at most kAppleFrameBytes
  bool has_start = false;            ///< start mark 1
  bool is_last = false;              ///< end mark 3; 2 says that more follow
  bool is_damaged = false;           ///< the ring's CRC did not fit
};

/// Why a message ends without having been received.
enum class AppleFailure : uint8_t {
  too_long,  ///< local length error
  damaged,   ///< local protection error
};

/// Where messages go. `take_receive` gives the room of the next receive in bytes, or nothing when none is posted.
template <class Host>
concept AppleHost = requires(Host host, uint32_t offset, std::span<const std::byte> bytes, AppleFailure why) {
  { host.take_receive() } -> std::same_as<std::optional<uint64_t>>;
  host.place(offset, bytes);
  host.complete(offset);
  host.fail(why);
};

struct AppleCounters {
  uint64_t messages = 0;
  uint64_t failed = 0;
  uint64_t dropped_frames = 0;  ///< of messages whose beginning is missing, or that found no receive, or failed
  uint64_t cut_short = 0;       ///< messages whose end never came: another one began
};

/// Puts messages together from frames, in the order of the ring. Not thread-safe.
class AppleReassembly {
 public:
  template <AppleHost Host>
  void on_frame(const AppleFrame& frame, Host& host) {
    if (frame.has_start && state_ != State::idle) {
      counters_.cut_short += state_ == State::receiving ? 1 : 0;  // its receive waits for the message that begins now
      state_ = State::idle;
    }
    if (state_ == State::idle && !begin(frame, host)) {
      return;
    }
    if (state_ == State::skipping) {
      ++counters_.dropped_frames;
      state_ = frame.is_last ? State::idle : State::skipping;
      return;
    }
    if (frame.is_damaged || frame.bytes.size() > room_ - received_) {
      give_up(frame, frame.is_damaged ? AppleFailure::damaged : AppleFailure::too_long, host);
      return;
    }
    host.place(received_, frame.bytes);
    received_ += static_cast<uint32_t>(frame.bytes.size());
    if (frame.is_last) {
      ++counters_.messages;
      state_ = State::idle;
      has_receive_ = false;
      host.complete(received_);
    }
  }

  bool is_idle() const { return state_ == State::idle; }
  const AppleCounters& counters() const { return counters_; }

 private:
  enum class State : uint8_t {
    idle,
    receiving,
    skipping,  ///< to the end of a message that can't be received
  };

  /// False: the frame was dealt with.
  template <AppleHost Host>
  bool begin(const AppleFrame& frame, Host& host) {
    // A short message of one frame may come without a start mark; what is neither a start nor an end belongs to a
    // message whose start got lost.
    if (!frame.has_start && !frame.is_last) {
      ++counters_.dropped_frames;
      return false;
    }
    if (!has_receive_) {
      const std::optional<uint64_t> room = host.take_receive();
      if (!room) {
        state_ = State::skipping;
        return true;
      }
      has_receive_ = true;
      room_ = *room < UINT32_MAX ? static_cast<uint32_t>(*room) : UINT32_MAX;
    }
    state_ = State::receiving;
    received_ = 0;
    return true;
  }

  template <AppleHost Host>
  void give_up(const AppleFrame& frame, AppleFailure why, Host& host) {
    ++counters_.failed;
    ++counters_.dropped_frames;
    state_ = frame.is_last ? State::idle : State::skipping;
    has_receive_ = false;
    host.fail(why);
  }

  State state_ = State::idle;
  bool has_receive_ = false;
  uint32_t room_ = 0;
  uint32_t received_ = 0;
  AppleCounters counters_;
};

}  // namespace ringbolt::wire
