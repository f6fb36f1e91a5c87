#include <sys/uio.h>

#include "rsocket/datagram.h"

namespace ringbolt::rsocket {

template <class Done>
Status Datagram::wait_while_open(const timeval& timeout, int flags, Done done) {
  const auto status = wait(deadline_of(timeout, flags),
                           [&]() RINGBOLT_REQUIRES(lock_) { return is_closed_ || base::call_locked(done); });
  return status && is_closed_ && !base::call_locked(done) ? base::fail(EBADF) : status;
}

base::Result<size_t> Datagram::send(IoCursor from, int flags, const Address* to) {
  const base::LockGuard lock(lock_);
  const Address* target = to != nullptr ? to : connected_.get();
  if (target == nullptr) {
    return base::fail(EDESTADDRREQ);
  }
  const Address address = *target;
  const size_t length = from.left();
  if (length > DatagramLink::kSlotBytes - DatagramHeader::kMaxBytes) {
    return base::fail(EMSGSIZE);
  }
  const auto found = peer_at(address);
  if (!found) {
    return base::fail(found.error().value);
  }
  Peer& peer = **found;  // stays where it is: peers are never forgotten
  if (peer.handle == nullptr) {
    progress();  // his answer may be here
  }
  // Unknown still: it goes by UDP, as does all until the answer has come.
  if (peer.handle == nullptr) {
    const int error = greet(address, peer, GreetingHeader::Op::data, &from);
    return error == 0 ? base::Result<size_t>(length) : base::fail(error);
  }
  if (!peer.link->has_slot()) {
    const auto status = wait_while_open(options_.send_timeout, flags, [&] { return peer.link->has_slot(); });
    if (!status) {
      return base::fail(status.error().value);
    }
  }
  const int error = peer.link->send(peer.handle.get(), peer.qpn, from);
  return error == 0 ? base::Result<size_t>(length) : base::fail(error);
}

int Datagram::greet(const Address& to, const Peer& peer, GreetingHeader::Op op, IoCursor* bytes) {
  const GreetingHeader header{op, peer.link->qpn(), peer.link->local()};
  // Of which no more than what is filled in leaves.
  std::array<std::byte, GreetingHeader::kMaxBytes + DatagramLink::kSlotBytes> out;
  header.emit(out);
  size_t length = header.bytes();
  if (bytes != nullptr) {
    const size_t data = bytes->left();
    bytes->gather(out.data() + length, data);
    length += data;
  }
  return ::sendto(udp_.get(), out.data(), length, 0, to.get(), to.length()) >= 0 ? 0 : errno;
}

base::Result<size_t> Datagram::receive(IoCursor to, int flags, Address* from) {
  const base::LockGuard lock(lock_);
  if (received_.is_empty()) {
    const auto status = wait_while_open(options_.receive_timeout, flags,
                                        [&]() RINGBOLT_REQUIRES(lock_) { return !received_.is_empty(); });
    if (!status) {
      return base::fail(status.error().value);
    }
  }
  return received_.take(to, (flags & MSG_PEEK) != 0, (flags & MSG_TRUNC) != 0, from);
}

}  // namespace ringbolt::rsocket
