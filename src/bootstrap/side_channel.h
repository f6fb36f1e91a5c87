#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "base/result.h"
#include "bootstrap/config.h"

namespace ringbolt::bootstrap {

/// Why an exchange failed: an errno, and words that name the rank and what it did.
struct Failure {
  int errno_value = 0;
  std::string text;
};

template <class T>
using Outcome = tl::expected<T, Failure>;

/// What came through the side channel.
struct Event {
  enum class Kind : uint8_t {
    message,
    lost,  ///< the rank's connection has ended without a word: its process died, or its host is gone
    left,  ///< the rank has destroyed its SideChannel
  };
  Kind kind = Kind::message;
  uint32_t rank = 0;             ///< whose message, or who
  uint16_t message_kind = 0;     ///< of a message: as its sender said
  int errno_value = 0;           ///< of lost: 0 if the connection was closed, else ECONNRESET, ETIMEDOUT, ENOBUFS, ...
  std::vector<std::byte> bytes;  ///< of a message
};

inline constexpr uint32_t kEveryone = UINT32_MAX;

/// The side channel of a group of ranks that have met: a star of TCP connections around rank 0. First it serves for
/// exchanges in which all take part, then for messages during the group's life. Format: docs/formats/bootstrap.md.
///
/// If rank 0 is lost, all others are lost to each other: only that is reported, and nothing can be sent any more.
/// Move-only. Not thread-safe: one thread at a time, for all functions. One that was moved from can only be destroyed
/// or assigned to.
class SideChannel {
 public:
  /// Blocks until all ranks have come, config.timeout_ms at most. Ranks may come in any order. Throws base::Error, on
  /// every rank that takes part, if one is missing, refused or lost; it says who and why. Asks the name service, unless
  /// config.host is an address; one that does not answer is left behind with a thread at the deadline.
  static SideChannel join(const Config& config);

  SideChannel(SideChannel&& other) noexcept;
  SideChannel& operator=(SideChannel&& other) noexcept;
  /// Tells the others that this rank leaves. Blocks for up to a second if what was sent has not left yet.
  ~SideChannel();

  uint32_t rank() const;
  uint32_t n_ranks() const;

  /// Gives `mine` to all and takes what they give: [n_ranks], by rank. Up to kMaxShareBytes each, of different lengths,
  /// kMaxGatheredBytes in all. Blocks until done or `deadline_ns` (base::now_ns()).
  /// Fails on all ranks if one is lost or leaves, calls something else, or its deadline passes; every exchange after
  /// that fails, too. Messages that arrive meanwhile are kept for poll().
  Outcome<std::vector<std::vector<std::byte>>> all_gather(std::span<const std::byte> mine, uint64_t deadline_ns);
  /// Returns when all ranks have called it. As all_gather() of nothing.
  Outcome<void> barrier(uint64_t deadline_ns);

  /// A descriptor that is readable when poll() has something to do; for poll(2) and epoll. Lives as long as this.
  int fd() const;
  /// Queues a message to one rank, or to all others (kEveryone), and sends what can be sent; never blocks. One to this
  /// rank itself comes back from poll(). Messages from one rank to another arrive in order, if at all.
  /// `is_latest_only`: of its messages of this kind only the newest counts: it takes the place of an older one that has
  /// not been sent (heartbeats). Others are never dropped: rank 0 gives up a rank that does not read kMaxQueuedBytes of
  /// them (it is lost, ENOBUFS).
  /// Errors: EINVAL (no such rank), EMSGSIZE (above kMaxMessageBytes), ENOTCONN (rank 0 or that rank is gone), ENOBUFS
  /// (rank 0 does not read).
  base::Result<void> send(uint32_t to, uint16_t kind, std::span<const std::byte> bytes, bool is_latest_only = false);
  /// Ranks, of those that this one is connected to, whose hosts have acknowledged something within `within_ms`,
  /// whatever their processes do: bit r for rank r, up to 63. Rank 0 knows of all, the others of rank 0. A frozen
  /// process's host does so; once its buffers are full, until two of the kernel's questions whether they still are have
  /// remained open. Send to it every interval, so that there is something to acknowledge.
  uint64_t hosts_answering(uint32_t within_ms) const;
  /// Sends and takes what can be sent and taken without blocking. Each rank is reported lost or left once, after all of
  /// its messages.
  std::vector<Event> poll();

 private:
  class Connections;
  explicit SideChannel(std::unique_ptr<Connections> connections);
  std::unique_ptr<Connections> connections_;
};

}  // namespace ringbolt::bootstrap
