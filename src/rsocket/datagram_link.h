#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "rsocket/cm_link.h"
#include "rsocket/datagram_headers.h"
#include "rsocket/io_cursor.h"
#include "rsocket/settings.h"

namespace ringbolt::rsocket {

/// What a datagram socket has at one address of this host: a UD queue pair with its memory. Not thread-safe.
/// Owns all of it; destroys the queue pair first.
class DatagramLink {
 public:
  static constexpr uint32_t kSlotBytes = 2048;  ///< of a datagram, its header included
  using Deliver = std::function<void(const Address& source, std::span<const std::byte> bytes)>;

  /// `local`: a specific address, and the socket's port. Throws base::Error: no device there, for one.
  DatagramLink(const Address& local, const Settings& settings);
  ~DatagramLink();
  DatagramLink(const DatagramLink&) = delete;
  DatagramLink& operator=(const DatagramLink&) = delete;

  const Address& local() const { return header_.source; }
  uint32_t qpn() const { return link_.id()->qp->qp_num; }
  ibv_pd* pd() const { return link_.id()->pd; }
  /// Open as long as this; non-blocking.
  int channel_fd() const { return channel_->fd; }

  bool has_slot() const { return !free_slots_.empty(); }
  /// Sends all of `from`, which fits, to a queue pair. Precondition: has_slot(). An errno, or 0.
  /// The bytes are copied. `handle` must stay until the send has completed.
  int send(ibv_ah* handle, uint32_t qpn, IoCursor from);
  /// Takes all completions; gives what came in to `deliver`. Returns whether there was one.
  /// `bytes` until `deliver` returns: the receive is posted again then.
  bool progress(const Deliver& deliver);
  /// Whether the queue was not armed, and is now.
  bool arm();
  void take_events();

 private:
  void make_queue_pair();
  int post_receive(uint32_t slot);
  std::span<std::byte> send_slot(uint32_t slot) const;
  std::span<std::byte> receive_slot(uint32_t slot) const;

  CmLink link_;
  DatagramHeader header_;
  uint32_t receives_;
  uint32_t sends_;
  CompletionChannel channel_;
  CompletionQueue cq_;
  RegisteredPages memory_;  // the receives' slots, then the sends'
  std::vector<uint32_t> free_slots_;
  bool is_armed_ = false;
};

}  // namespace ringbolt::rsocket
