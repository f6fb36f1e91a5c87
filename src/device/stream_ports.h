#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/adaptive_mutex.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "device/stream_specs.h"
#include "link/overlay.h"
#include "link/stream_endpoint.h"
#include "link/stream_health.h"
#include "link/udp_buffer.h"
#include "link/udp_endpoint.h"

namespace ringbolt::device {

struct LiveObjects;
struct Port;

/// The streams of this process' ports: packets as on a network, from BTH to ICRC, but the checksums of the frames stand
/// for the ICRC, which is 0. docs/formats/stream.md has what stands before a packet. Thread-safe.
/// Owned by the network. Streams are opened once, and last as long as this. Their locks are leaves, and one may be held
/// for kRoomPatienceNs (4 ms) by a sender that waits for room.
class StreamPorts {
 public:
  /// `slot`: of this process, which says whose queue pairs are its own.
  explicit StreamPorts(uint32_t slot);
  ~StreamPorts();

  /// Opens the port's streams, unless they are. Throws base::Error.
  void add(const Port& port);

  /// Hands what has come to `sink(const link::UdpEndpoint::Arrived&)`, in order. Never blocks: false when another
  /// thread is in here. A sink may send, and must not throw.
  template <class Sink>
  bool receive(uint64_t now_ns, Sink&& sink);
  /// A port's peer has gone or come back since this was last asked; Port::is_up() says which.
  bool take_news() { return has_news_.exchange(false); }
  bool has_news() const { return has_news_.load(std::memory_order_relaxed); }
  /// As link::StreamHealth::excused_until_ns().
  uint64_t excused_until_ns(uint32_t interface_index, uint64_t now_ns) const;
  /// For epoll: receive() has something to do.
  int descriptor() const { return epoll_.get(); }

  /// A packet from BTH to pad. Waits a little while too many are under way, and takes in what comes meanwhile. 0,
  /// ENETUNREACH (there is nobody of that address at the other end), or EAGAIN: it is lost.
  int send(const link::UdpPath& path, std::span<const std::byte> packet);
  void flush();

  /// Gives the last packets a little time to arrive; then says goodbye.
  void leave();
  void abandon_after_fork() RINGBOLT_NOT_ANALYSED;  // whoever held a lock stayed behind

 private:
  // A packet that has come and is to be handed out; `offset` and `bytes` are of `buffer`, from BTH to ICRC.
  struct Pending {
    wire::Flow flow;
    size_t offset = 0;
    size_t bytes = 0;
    link::UdpBufferRef buffer;
  };
  struct Stream {
    explicit Stream(const link::StreamHealth::Limits& limits) : health(limits) {}
    uint32_t interface_index = 0;
    std::shared_ptr<LiveObjects> live;  // of its port
    std::vector<wire::Address> gids;
    bool is_overlay = false;    // the other end is the agent, which leads to all nodes
    link::StreamHealth health;  // updated under the lock
    base::Mutex lock;
    std::optional<link::StreamEndpoint> endpoint RINGBOLT_GUARDED_BY(lock);
    std::optional<link::StreamEndpoint> far_end RINGBOLT_GUARDED_BY(lock);  // of a port that reaches itself alone
    std::vector<Pending> arrived RINGBOLT_GUARDED_BY(lock);
    link::UdpBufferRef filling RINGBOLT_GUARDED_BY(lock);
    size_t filled_bytes RINGBOLT_GUARDED_BY(lock) = 0;
    bool has_unflushed RINGBOLT_GUARDED_BY(lock) = false;
    bool is_stalled RINGBOLT_GUARDED_BY(lock) =
        false;  // somebody has waited for room in vain; nobody does again before there is some
  };

  void open(Stream& stream, const Port& port);
  void watch(const link::StreamEndpoint& endpoint, const Port& port);
  void take_in(Stream& stream, uint64_t now_ns) RINGBOLT_REQUIRES(stream.lock);
  void look_at(Stream& stream, uint64_t now_ns) RINGBOLT_REQUIRES(stream.lock);
  static std::optional<wire::Address> source_of(const Stream& stream, const link::PortPrefix& prefix)
      RINGBOLT_REQUIRES(stream.lock);
  static std::optional<uint8_t> node_for(const Stream& stream, const wire::Address& destination)
      RINGBOLT_REQUIRES(stream.lock);
  // What is malformed, foreign or too much is dropped without a word: RC sends it again.
  void keep(Stream& stream, std::span<const std::byte> message) RINGBOLT_REQUIRES(stream.lock);
  bool wait_for_room(Stream& stream) RINGBOLT_REQUIRES(stream.lock);
  Stream* find(uint32_t interface_index) const;
  link::StreamLink::Options link_options(const Port& port) const;

  const uint32_t slot_;
  base::UniqueFd epoll_;
  const std::shared_ptr<link::UdpBufferPool> pool_;
  base::Mutex adding_;
  std::array<std::atomic<Stream*>, kMaxStreamPorts> streams_{};
  std::vector<std::unique_ptr<Stream>> owned_ RINGBOLT_GUARDED_BY(adding_);
  // Keeps packets of one stream in their order: only one thread hands them out at a time.
  base::AdaptiveMutex receiving_;  // only ever tried
  std::vector<Pending> turn_ RINGBOLT_GUARDED_BY(receiving_);
  std::atomic<bool> has_news_{false};
};

template <class Sink>
bool StreamPorts::receive(uint64_t now_ns, Sink&& sink) {
  if (!receiving_.try_lock()) {
    return false;
  }
  const base::LockGuard only_one(receiving_, base::kAdoptLock);
  for (const auto& entry : streams_) {
    Stream* stream = entry.load(std::memory_order_acquire);
    if (stream == nullptr) {
      continue;
    }
    {
      const base::LockGuard guard(stream->lock);
      take_in(*stream, now_ns);
      turn_.swap(stream->arrived);
    }
    for (const Pending& one : turn_) {
      const std::span<const std::byte> packet(one.buffer.get()->data() + one.offset, one.bytes);
      sink(link::UdpEndpoint::Arrived{one.flow, stream->interface_index, 0, packet, *one.buffer.get()});
    }
    turn_.clear();
  }
  return true;
}

}  // namespace ringbolt::device
