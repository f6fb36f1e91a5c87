#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "link/stream_buffer.h"
#include "wire/stream_frame.h"

namespace ringbolt::link {

/// The longest message that a session carries: a link's number, and a packet with what its owner puts before it.
inline constexpr size_t kMaxStreamMessageBytes = 4352;

/// One end of one stream, without the stream: bytes in, bytes out, time as an argument. It makes frames of messages and
/// messages of frames, agrees with the other end on an epoch, and notices when bytes are missing or wrong; then the
/// epoch is over, and its owner, who keeps every message until it is acknowledged, begins another. Within an epoch each
/// message arrives once, in order. docs/formats/stream.md has states and rules. Not thread-safe.
///
///     session.open(epoch, now);
///     forever:
///       read into session.input(), session.received(bytes), session.next(now) until there is nothing
///       session.tick(now)
///       write session.output(), session.written(bytes)
///
/// Hot path: no allocation, lock, system call, virtual call, exception.
/// Owned by a StreamLink, under whose owner's lock it is.
class StreamSession {
 public:
  enum class State : uint8_t {
    closed,   ///< no stream, or its epoch is over
    hunting,  ///< nothing of what came is the other end's HELLO
    hello,    ///< the other end is known; one of the two has not been told so yet
    ready,    ///< messages travel
  };
  /// Why an epoch is over.
  enum class End : uint8_t {
    none,
    bad_frame,     ///< a wrong checksum, or what no sender may send
    gap,           ///< frames are missing
    overrun,       ///< more than was granted
    restarted,     ///< the other end began a new epoch
    silence,       ///< nothing came for too long
    said_bye,      ///< the other end leaves
    stream_ended,  ///< end of file, or an error of the stream
    refused,       ///< by the owner
    no_memory,     ///< for a packet that came early
  };
  // Of both ends alike: an end that says PING more seldom than the other's silence is taken for dead.
  struct Timing {
    uint64_t hello_ns = 200'000'000;      ///< from HELLO to HELLO until there is an answer
    uint64_t ping_ns = 1'000'000'000;     ///< after which a silent end sends PING
    uint64_t silence_ns = 3'000'000'000;  ///< after which the other end is taken for dead
    uint64_t acknowledge_ns = 1'000'000;  ///< how long acknowledgements wait for a frame to travel with
  };
  struct Options {
    uint32_t window_frames = 256;      ///< granted to the other end: frames that it may have under way
    size_t output_bytes = 256 * 1024;  ///< frames that wait to be written; at least two messages' worth
    std::vector<std::byte> hello;      ///< the payload of HELLO, at most wire::kMaxStreamHelloBytes
    Timing timing;
  };
  struct Event {
    enum class Kind : uint8_t {
      nothing,  ///< for more, more bytes are needed
      greeted,  ///< `bytes` is the other end's HELLO; accept_peer() or it comes to nothing
      ready,    ///< messages may be sent from here on
      message,  ///< `bytes` is one
      over,     ///< the epoch is over: end() says why. take_unacknowledged(), then restart() or open()
    };
    Kind kind = Kind::nothing;
    std::span<const std::byte> bytes;  ///< valid until the next call of a method that is not const
  };

  explicit StreamSession(const Options& options);

  /// A stream has been opened: forgets all bytes of the last one. `epoch` is random and not 0.
  void open(uint32_t epoch, uint64_t now_ns);
  /// A new epoch in the same stream: what came already is looked through for the other end's HELLO, and a frame that
  /// was written in part is written to its end.
  void restart(uint32_t epoch, uint64_t now_ns);
  /// The stream is gone, or its owner wants no more of this epoch.
  void end(End why);
  /// Says BYE and ends.
  void leave(uint64_t now_ns);

  /// Where bytes that are read go. Never empty after next() has returned nothing.
  std::span<std::byte> input() { return input_.room(); }
  void received(size_t bytes) { input_.append(bytes); }
  Event next(uint64_t now_ns);
  void accept_peer(uint64_t now_ns);

  /// Frames that the other end's grant has left.
  uint32_t credits() const;
  bool can_send(size_t message_bytes) const;
  /// Only when can_send(). `tag` comes back from take_acknowledged() or take_unacknowledged(), in order.
  void send(uint64_t tag, std::span<const std::byte> message, uint64_t now_ns);
  /// Messages that the other end has taken in. Nothing: no more of them now.
  std::optional<uint64_t> take_acknowledged();
  /// Once the epoch is over: those of which that is not known.
  std::optional<uint64_t> take_unacknowledged();

  std::span<const std::byte> output() const { return output_.bytes(); }
  /// How much of output() ends with the frame that it begins in: what makes one packet of a Thunderbolt stream.
  size_t output_frame_bytes() const;
  void written(size_t bytes);

  /// Looks at the time: HELLO, PING, acknowledgements that wait. True: the epoch has ended in silence. Call it only
  /// when everything that had come was looked at: who slept for long finds the other end silent.
  bool tick(uint64_t now_ns);
  uint64_t next_deadline_ns() const;

  State state() const { return state_; }
  bool is_ready() const { return state_ == State::ready; }
  End end() const { return end_; }
  uint32_t epoch() const { return epoch_; }

 private:
  // Bounds that nobody agrees on with the peer: each end has its own.
  static constexpr uint32_t kMaxInFlight = 1024;  // frames, however many are granted; a power of two
  static constexpr size_t kInputBytes = 128 * 1024;
  static constexpr size_t kControlBytes = 1024;  // of the output, kept free for frames without a message

  struct InFlight {
    uint64_t tag = 0;
    uint32_t last_sequence = 0;
  };

  void begin(uint32_t epoch, uint64_t now_ns);
  Event over(End why);
  bool put(wire::StreamType type, std::span<const std::byte> payload, bool is_last, uint64_t now_ns);
  // stream_session_receive.cpp
  bool hunt();
  Event lose_track(End why);
  Event take(const wire::StreamHeader& header, std::span<const std::byte> payload, uint64_t now_ns);
  Event take_hello(const wire::StreamHeader& header, std::span<const std::byte> payload, uint64_t now_ns);
  Event take_before_ready(const wire::StreamHeader& header, std::span<const std::byte> payload, uint64_t now_ns);
  Event take_when_ready(const wire::StreamHeader& header, std::span<const std::byte> payload, uint64_t now_ns);
  Event take_data(const wire::StreamHeader& header, std::span<const std::byte> payload, uint64_t now_ns);
  End check(const wire::StreamHeader& header) const;

  const Options options_;
  StreamBuffer input_;
  StreamBuffer output_;
  size_t partial_bytes_ = 0;  // of the output: the rest of a frame whose beginning is written
  std::unique_ptr<std::byte[]> assembly_;
  size_t assembled_bytes_ = 0;
  std::vector<InFlight> in_flight_;  // a ring
  uint32_t first_in_flight_ = 0;     // count up for ever, as do the sequences
  uint32_t end_in_flight_ = 0;

  State state_ = State::closed;
  End end_ = End::none;
  uint32_t epoch_ = 0;
  uint32_t peer_epoch_ = 0;
  uint32_t offered_epoch_ = 0;  // of the HELLO that the owner was asked about
  uint32_t offered_credit_ = 0;
  bool is_acknowledged_ = false;  // the other end's present epoch knows ours
  uint32_t next_sequence_ = 0;
  uint32_t acknowledged_ = 0;  // the other end expects this one, or a later one
  uint32_t credit_ = 0;        // frames that we may have sent in all
  uint32_t expected_ = 0;
  uint32_t granted_ = 0;        // frames that the other end may have sent in all, as it was told
  uint32_t told_expected_ = 0;  // the last `expected` that left
  uint64_t last_heard_ns_ = 0;
  uint64_t last_sent_ns_ = 0;
  uint64_t next_hello_ns_ = 0;
  uint64_t acknowledge_due_ns_ = UINT64_MAX;
};

/// The reason in words: "frames are missing".
const char* reason_of(StreamSession::End end);

}  // namespace ringbolt::link
