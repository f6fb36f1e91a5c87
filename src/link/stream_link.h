#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "link/stream_session.h"
#include "link/stream_window.h"

namespace ringbolt::link {

/// Packets over one or more streams to one peer (rails), without the streams: bytes in and out, time as an argument.
/// Packets leave on whichever rail has most room and are handed over at the other end in the order in which they were
/// sent, each once: what a rail had not acknowledged when its stream ended or lost bytes goes over the others, or over
/// the same again when it has come back. docs/formats/stream.md has the rules. Not thread-safe.
/// Owned by a StreamEndpoint. All memory for packets but the order's is taken when it is made: that of packets which
/// came too early is taken when they do, and kept.
class StreamLink {
 public:
  struct Options {
    size_t rails = 1;
    uint64_t incarnation = 0;          ///< random, not 0: who starts again is somebody else
    uint64_t seed = 1;                 ///< of the epochs
    uint32_t window_packets = 1024;    ///< not acknowledged; a power of two, and the same at the other end
    uint32_t window_frames = 256;      ///< of each rail
    size_t output_bytes = 256 * 1024;  ///< of each rail
    std::vector<std::byte> greeting;   ///< for the peer, at most wire::kMaxStreamGreetingBytes
    StreamSession::Timing timing;
  };
  explicit StreamLink(const Options& options);

  /// A rail's stream was opened, or opened again.
  void open(size_t rail, uint64_t now_ns);
  /// It has ended, or failed.
  void close(size_t rail);
  /// All rails say goodbye; their output is still to be written.
  void leave(uint64_t now_ns);

  std::span<std::byte> input(size_t rail) { return rails_[rail].session.input(); }
  void received(size_t rail, size_t bytes) { rails_[rail].session.received(bytes); }
  /// The next packet in order, valid until the next call of a method that is not const. Call it until there is nothing
  /// after bytes came in over a rail.
  /// Where a packet has come too early and there is no memory to keep it the rail's epoch ends: it comes again.
  std::optional<std::span<const std::byte>> next_packet(size_t rail, uint64_t now_ns);

  /// Where the next packet may be written, kMaxStreamPacketBytes long. Empty: as many are under way as may be.
  std::span<std::byte> reserve() { return window_.reserve(); }
  /// Of the reserved place, in bytes. It waits until distribute().
  void commit(size_t bytes) { window_.commit(bytes); }
  /// Gives packets that wait to rails that have room. Then their output() is to be written.
  void distribute(uint64_t now_ns);
  std::span<const std::byte> output(size_t rail) const { return rails_[rail].session.output(); }
  size_t output_frame_bytes(size_t rail) const { return rails_[rail].session.output_frame_bytes(); }
  void written(size_t rail, size_t bytes) { rails_[rail].session.written(bytes); }

  /// After everything that had come was looked at.
  void tick(uint64_t now_ns);
  uint64_t next_deadline_ns() const;

  size_t rail_count() const { return rails_.size(); }
  StreamSession::State state(size_t rail) const { return rails_[rail].session.state(); }
  /// Packets are under way, or wait.
  bool has_unacknowledged() const { return !window_.is_empty(); }
  /// When the peer last acknowledged something while more was to be; 0: all is.
  uint64_t waiting_since_ns() const { return waiting_since_ns_; }
  /// At least one rail is ready.
  bool is_up() const { return ready_rails_ != 0; }
  /// None is, and the last one ended with the peer's goodbye.
  bool has_left() const { return has_left_ && !is_up(); }
  /// Why the rail's last epoch ended.
  StreamSession::End last_end(size_t rail) const { return rails_[rail].last_end; }
  /// The rail is where only another stream helps: it was silent for too long, or the peer has left.
  bool should_reopen(size_t rail) const { return rails_[rail].should_reopen; }

  /// Of the peer that the first ready rail led to; 0: none yet. Another one is somebody else, who knows of nothing.
  uint64_t peer_incarnation() const { return peer_incarnation_; }
  std::span<const std::byte> peer_greeting() const { return peer_greeting_; }

  struct Counters {
    uint64_t packets_in = 0;
    uint64_t packets_out = 0;        ///< each time one was given to a rail
    uint64_t repeated_packets = 0;   ///< given to a rail again
    uint64_t duplicate_packets = 0;  ///< came again, and were left out
    uint64_t ended_epochs = 0;       ///< of all rails, also some that no packet was sent in
    uint32_t kept_packets = 0;       ///< held back now, until those before them come
  };
  Counters counters() const;

 private:
  struct Rail {
    explicit Rail(const StreamSession::Options& options) : session(options) {}
    StreamSession session;
    uint64_t offered_incarnation = 0;
    std::vector<std::byte> offered_greeting;
    StreamSession::End last_end = StreamSession::End::none;
    bool should_reopen = false;
  };

  uint32_t next_epoch();
  void on_greeted(Rail& rail, std::span<const std::byte> hello, uint64_t now_ns);
  /// False: it leads to somebody else than the others do.
  bool on_ready(Rail& rail);
  void count_ready();
  void on_over(Rail& rail, uint64_t now_ns);
  void give_back(Rail& rail);
  /// True: some were.
  bool take_acknowledged(Rail& rail);
  std::optional<std::span<const std::byte>> take_message(Rail& rail, std::span<const std::byte> message,
                                                         uint64_t now_ns);
  Rail* roomiest(size_t message_bytes);

  StreamSendWindow window_;
  StreamOrder order_;
  std::vector<Rail> rails_;
  const uint64_t incarnation_;
  uint64_t epochs_;  // state of the generator
  uint64_t peer_incarnation_ = 0;
  std::vector<std::byte> peer_greeting_;
  size_t ready_rails_ = 0;
  bool has_left_ = false;
  uint64_t waiting_since_ns_ = 0;
  Counters counters_;
};

}  // namespace ringbolt::link
