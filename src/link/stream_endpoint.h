#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/unique_fd.h"
#include "link/stream_link.h"
#include "link/stream_source.h"

namespace ringbolt::link {

/// A link whose rails are descriptors: reads and writes them, and opens them again when they end. No threads; never
/// blocks. Times are of base::now_ns(). What it does not take in stays in the streams and holds the peer up. Not
/// thread-safe.
/// Owns its sources and streams. Used under its owner's lock.
class StreamEndpoint {
 public:
  /// `options.rails` is the number of sources. Throws base::Error when the system has no descriptors left.
  StreamEndpoint(std::vector<std::unique_ptr<StreamSource>> sources, StreamLink::Options options, uint64_t now_ns);
  ~StreamEndpoint();
  StreamEndpoint(const StreamEndpoint&) = delete;
  StreamEndpoint& operator=(const StreamEndpoint&) = delete;

  /// Readable when receive() or flush() has something to do, deadlines included. For poll and epoll; do not read it.
  int descriptor() const { return epoll_.get(); }

  /// Hands packets that have come to `sink(std::span<const std::byte>)`, in order, and returns how many. Then answers
  /// what has to be answered, and sends as flush() does. A sink must not throw, nor call this object.
  template <class Sink>
  size_t receive(uint64_t now_ns, Sink&& sink);

  /// Where the next packet may be written, up to kMaxStreamPacketBytes. Empty: too many are under way; wait for the
  /// descriptor.
  std::span<std::byte> reserve() { return link_.reserve(); }
  void commit(size_t bytes) { link_.commit(bytes); }
  /// What finds no room stays, and descriptor() becomes readable when there is some.
  void flush(uint64_t now_ns);
  /// The descriptor becomes readable at this time too; UINT64_MAX: no more. Takes effect with the next flush().
  void set_alarm(uint64_t at_ns) { alarm_at_ns_ = at_ns; }

  /// Says goodbye as far as the streams have room now, and closes them.
  void leave(uint64_t now_ns);
  /// In a forked child: the streams are the parent's.
  void abandon_after_fork();

  const StreamLink& link() const { return link_; }
  /// No stream is left, and none can come again.
  bool is_over() const {
    return std::all_of(rails_.begin(), rails_.end(), [](const Rail& rail) { return rail.is_gone; });
  }

 private:
  // So that one rail does not starve the others; what is left keeps the descriptor readable.
  static constexpr int kReadsAtOnce = 4;
  static constexpr uint64_t kFirstRetryNs = 10'000'000;
  static constexpr uint64_t kLastRetryNs = 200'000'000;

  struct Rail {
    std::unique_ptr<StreamSource> source;
    OpenStream stream;
    uint64_t retry_at_ns = 0;
    uint64_t retry_ns = kFirstRetryNs;
    bool is_listening = false;  // the listener is watched
    bool wants_room = false;    // the stream is watched for room
    bool is_gone = false;       // for good
    bool has_stream() const { return stream.in.is_open(); }
  };

  void open(size_t index, uint64_t now_ns);
  void close(size_t index, uint64_t now_ns);
  void drop_stream(Rail& rail);
  void watch(Rail& rail, bool wants_room);
  void watch_listener(Rail& rail, bool is_wanted);
  void open_what_is_due(uint64_t now_ns);
  /// True: bytes came.
  bool read(size_t index, uint64_t now_ns);
  /// True: bytes went.
  bool write(size_t index, uint64_t now_ns);
  void finish_turn(uint64_t now_ns);
  void set_timer(uint64_t now_ns);

  StreamLink link_;
  std::vector<Rail> rails_;
  base::UniqueFd epoll_;
  base::UniqueFd timer_;
  uint64_t timer_at_ns_ = UINT64_MAX;
  uint64_t alarm_at_ns_ = UINT64_MAX;
};

template <class Sink>
size_t StreamEndpoint::receive(uint64_t now_ns, Sink&& sink) {
  size_t packets = 0;
  open_what_is_due(now_ns);
  for (size_t rail = 0; rail < rails_.size(); ++rail) {
    for (int i = 0; i < kReadsAtOnce && read(rail, now_ns); ++i) {
      while (const auto packet = link_.next_packet(rail, now_ns)) {
        sink(*packet);
        ++packets;
      }
    }
  }
  finish_turn(now_ns);
  return packets;
}

}  // namespace ringbolt::link
