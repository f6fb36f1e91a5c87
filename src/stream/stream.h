#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/condition.h"
#include "base/result.h"
#include "stream/address.h"
#include "stream/cm_endpoint.h"
#include "stream/cm_watch.h"
#include "stream/completion_watch.h"
#include "stream/connection.h"
#include "stream/deadline.h"
#include "stream/readiness.h"
#include "stream/service.h"
#include "stream/stream_end.h"

namespace ringbolt::stream {

/// What a program may wait for, as bits.
enum Event : uint32_t {
  kReadable = 1,   ///< bytes to read, or the end
  kWritable = 2,   ///< room for one byte at least, or the end
  kEnded = 4,      ///< whatever is read now, nothing more comes
  kConnected = 8,  ///< both sides are ready
  kDrained = 16,   ///< all that was written has reached the peer's memory, as is_drained() has it
};

/// How many streams of a listener there are now, and how its streams and requests ended. Shared with them. Thread-safe.
/// Counts alone, without an order among them.
struct ListenerTally {
  std::atomic<uint32_t> streams{0};
  std::atomic<uint64_t> accepted{0};
  CloseTally closes;
  CloseTally rejections;  ///< those of `closes` that never were streams
};

/// One byte stream over RDMA, as Valkey has it, to one peer. Every call that may block has a deadline: with one that is
/// over it looks, and answers EAGAIN; with another that passes, ETIMEDOUT. After the end what was received can still be
/// read. Thread-safe: one thread may wait to read and another to write; two that read at once get pieces of the stream.
/// Owns the connection and what the connection manager has of it. Whoever destroys it makes sure that no other thread
/// is in a call of it.
class Stream {
 public:
  /// Begins to connect to the first of the addresses that answers, and does not wait. `name`: the peer in messages.
  /// Throws base::Error.
  static std::unique_ptr<Stream> connect(std::shared_ptr<Service> service, std::vector<Address> targets,
                                         std::string name, const StreamSettings& settings);
  /// Answers a request for a connection, which is rejected where this throws. No event of it is unacknowledged. Whoever
  /// connects may not be ready yet. Throws base::Error.
  static std::unique_ptr<Stream> accept(std::shared_ptr<Service> service, verbs::OwnedCm<rdma_cm_id> request,
                                        std::shared_ptr<ListenerTally> tally, const StreamSettings& settings);
  /// Ends it without waiting: what has not reached the peer may be lost.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// 0, or why it did not come about.
  int await_connected(const Deadline& deadline);
  /// Up to into.size() bytes, one at least; 0: the peer has closed it, or into is empty.
  base::Result<size_t> read(std::span<std::byte> into, const Deadline& deadline);
  /// The unread bytes where they lie, the second piece behind the first; none: the peer has closed it. They stay there
  /// until consume(), though a hostile peer may change them: copy what decides something before looking at it.
  base::Result<std::array<std::span<const std::byte>, 2>> peek(const Deadline& deadline);
  /// EINVAL: there are not so many.
  int consume(size_t count);
  /// All of the pieces, or as many bytes as found room by the deadline: an error only where that were none. Where some
  /// are left, the descriptor also stands for kWritable until the next write or ready().
  base::Result<size_t> write(std::span<const iovec> pieces, const Deadline& deadline);
  /// Where the next bytes of the stream are sent from, for one thread that fills them in itself and then says send();
  /// empty while there is no room, or the stream has ended. Does not block.
  /// Good until the next call that writes or looks for the stream, but send().
  std::span<std::byte> room();
  /// Sends the first bytes of what room() gave, which nobody else has written a byte to since. 0, or why the stream has
  /// ended; EINVAL: the bytes lie elsewhere.
  int send(std::span<const std::byte> filled);

  /// Memory of the program's own to send from without a copy, which stays where it is until it is unregistered or the
  /// stream has gone. 0 or an errno: EBUSY while it is being sent.
  int register_memory(std::span<std::byte> memory);
  int unregister_memory(const std::byte* begin);
  /// As write(), from registered memory, which stays untouched until await_sent(). EINVAL: it is not registered.
  base::Result<size_t> write_registered(std::span<const std::byte> data, const Deadline& deadline);
  /// Until the device has done with all registered memory that was written.
  int await_sent(const Deadline& deadline);

  /// One descriptor, readable while one of the wanted events is there; the stream's own. Throws base::Error.
  /// Made at the first call; open as long as the stream.
  int fd();
  /// Which events the descriptor stands for: kReadable at first.
  void want(uint32_t events);
  /// Which of the events there are now, kEnded and kConnected always among them.
  base::Result<uint32_t> await(uint32_t events, const Deadline& deadline);

  /// Whether all that was written has reached the peer's memory, or never will. Does not block: while it has not, the
  /// device is asked for word of it, which kDrained stands for.
  bool is_drained();
  /// Waits until all that was written is known to be in the peer's memory, and ends the stream. 0: it is, whether the
  /// peer reads it or not. Else why it may not be: EPIPE where the peer has closed it first. How much: statistics().
  int close(const Deadline& deadline);

  CloseReason reason() const;
  /// What happened, in words that name the peer and the device; empty while nothing has.
  std::string words() const;
  /// Of the device that carries it; empty while none was found.
  std::string device() const;
  Address peer() const;
  Statistics statistics() const;

  /// The keeper's turn: does nothing if a thread of the program is in the stream.
  /// Called by the keeper's thread alone.
  void look_after();

 private:
  enum class Phase : uint8_t { resolving_address, resolving_route, connecting, accepting, connected, ended };

  Stream(std::shared_ptr<Service> service, const StreamSettings& settings, Role role, std::string name);

  // stream_progress.cpp: how it comes about, sleeps and ends.
  void begin_attempt() RINGBOLT_REQUIRES(mutex_);
  void try_next(CloseReason reason, std::string_view what) RINGBOLT_REQUIRES(mutex_);
  void answer(verbs::OwnedCm<rdma_cm_id> request) RINGBOLT_REQUIRES(mutex_);
  void take_cm_events() RINGBOLT_REQUIRES(mutex_);
  void take(const rdma_cm_event& event) RINGBOLT_REQUIRES(mutex_);
  void take_failure(const rdma_cm_event& event, CloseReason reason) RINGBOLT_REQUIRES(mutex_);
  void request_connection() RINGBOLT_REQUIRES(mutex_);
  void make_connection() RINGBOLT_REQUIRES(mutex_);
  void look_around() RINGBOLT_REQUIRES(mutex_);
  void look_at_cm_events(uint64_t now_ns) RINGBOLT_REQUIRES(mutex_);
  void note_end() RINGBOLT_REQUIRES(mutex_);
  void end(CloseReason reason, std::string_view what) RINGBOLT_REQUIRES(mutex_);
  void settle() RINGBOLT_REQUIRES(mutex_);
  void sleep_until(uint64_t until_ns) RINGBOLT_REQUIRES(mutex_);
  bool arm() RINGBOLT_REQUIRES(mutex_);

  // stream.cpp: reading and writing.
  void look() RINGBOLT_REQUIRES(mutex_);
  bool is_there(uint32_t events) const RINGBOLT_REQUIRES(mutex_);
  uint32_t events_now() const RINGBOLT_REQUIRES(mutex_);
  uint32_t unread() const RINGBOLT_REQUIRES(mutex_) { return connection_ ? connection_->unread() : 0; }
  bool is_over() const RINGBOLT_REQUIRES(mutex_) { return phase_ == Phase::ended; }
  uint64_t bytes_unconfirmed() const RINGBOLT_REQUIRES(mutex_);
  template <class IsDone>
  int wait(const Deadline& deadline, IsDone is_done) RINGBOLT_REQUIRES(mutex_);

  const std::shared_ptr<Service> service_;
  const StreamSettings settings_;
  const Role role_;
  const std::string name_;
  std::shared_ptr<ListenerTally> tally_;  // a server's

  // Given up while a thread sleeps or spins, so that others get in; never held across a wait.
  mutable base::Mutex mutex_;
  base::Condition changed_;
  CmEndpoint cm_ RINGBOLT_GUARDED_BY(mutex_);
  CmWatch cm_watch_ RINGBOLT_GUARDED_BY(mutex_);
  std::optional<Connection> connection_ RINGBOLT_GUARDED_BY(mutex_);  // gone before its identifier, which cm_ has
  CompletionWatch completions_ RINGBOLT_GUARDED_BY(mutex_);
  std::optional<Readiness> readiness_ RINGBOLT_GUARDED_BY(mutex_);
  Phase phase_ RINGBOLT_GUARDED_BY(mutex_) = Phase::resolving_address;
  StreamEnd end_ RINGBOLT_GUARDED_BY(mutex_);
  uint32_t wanted_ RINGBOLT_GUARDED_BY(mutex_) = kReadable;
  bool asks_for_room_ RINGBOLT_GUARDED_BY(mutex_) = false;  // a write was cut short
  bool is_led_ RINGBOLT_GUARDED_BY(mutex_) = false;         // a thread sleeps on the descriptors for all
  uint32_t waiting_ RINGBOLT_GUARDED_BY(mutex_) = 0;        // threads in a call that waits
  // Written before anybody else has the stream; 0: the keeper does not know it.
  uint64_t keeper_key_ = 0;
};

}  // namespace ringbolt::stream
