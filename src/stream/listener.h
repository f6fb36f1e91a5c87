#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "stream/address.h"
#include "stream/deadline.h"
#include "stream/stream.h"

namespace ringbolt::stream {

/// Waits for streams at one port. Requests of peers that are not allowed, or that are too many, are rejected and
/// counted; so are those for which nothing is left here. Its streams live on without it. Thread-safe.
/// Destroys its identifiers, which ends the listening; no other thread may be in accept() then.
class Listener {
 public:
  /// `host`: an address or name of this machine; empty: all of its addresses, of IPv4 and, if there are any, IPv6.
  /// `port`: 0 for a free one. Throws base::Error.
  Listener(std::shared_ptr<Service> service, const std::string& host, uint16_t port, const ListenerSettings& settings);

  /// The next stream, which may not be connected yet: its calls wait for that. EAGAIN, or ETIMEDOUT.
  /// Goes on while requests come that are rejected, beyond the deadline, too.
  base::Result<std::unique_ptr<Stream>> accept(const Deadline& deadline);
  /// For poll(2) and epoll(7): readable while a request waits. The listener's own.
  int fd() const { return channel_.fd(); }
  uint16_t port() const { return port_; }
  const ListenerTally& tally() const { return *tally_; }

 private:
  void listen_at(Address address, bool is_family_only);
  verbs::CmEvent next() RINGBOLT_EXCLUDES(mutex_);
  using Request = verbs::OwnedCm<rdma_cm_id>;
  std::unique_ptr<Stream> answer(Request request);
  CloseReason objection_to(const Address& peer) const;

  const std::shared_ptr<Service> service_;
  const ListenerSettings settings_;
  const AllowList allowed_;
  const std::shared_ptr<ListenerTally> tally_;
  base::Mutex mutex_;  // of taking an event: several threads may accept
  const verbs::EventChannel channel_;
  // Made by the constructor alone; they go before their channel.
  std::vector<verbs::CmIdentifier> ids_;
  uint16_t port_ = 0;
};

}  // namespace ringbolt::stream
