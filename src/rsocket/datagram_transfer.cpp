#include <fcntl.h>
#include <sys/uio.h>

#include "rsocket/datagram.h"

namespace ringbolt::rsocket {

template <class Done>
Status Datagram::wait(const Deadline& deadline, Done done) {
  Sleeper& sleeper = Sleeper::of_this_thread();
  const uint64_t spin_until_ns = base::now_ns() + default_spin_ns();
  for (;;) {
    progress();
    if (base::call_locked(done)) {
      return {};
    }
    if (is_closed_ || deadline.is_over()) {
      return base::fail(is_closed_ ? EBADF : EAGAIN);
    }
    if (base::now_ns() < spin_until_ns) {
      const base::Unlocked unlocked(lock_);
      continue;
    }
    if (arm()) {
      continue;
    }
    std::vector<pollfd>& waits = sleeper.scratch();
    waits.clear();
    add_waits(waits);
    watchers_.add(sleeper);
    bool is_interrupted = false;
    {
      const base::Unlocked unlocked(lock_);
      is_interrupted = sleeper.sleep(waits, deadline) < 0 && errno == EINTR;
    }
    watchers_.remove(sleeper);
    take_events();
    if (is_interrupted) {
      return base::fail(EINTR);
    }
  }
}

Deadline Datagram::deadline_of(const timeval& timeout, int flags) const {
  if ((flags & MSG_DONTWAIT) != 0 || (file_flags_.load() & O_NONBLOCK) != 0) {
    return Deadline::in_ns(0);
  }
  const uint64_t ns =
      static_cast<uint64_t>(timeout.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(timeout.tv_usec) * 1000U;
  return ns == 0 ? Deadline::never() : Deadline::in_ns(ns);
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
  if (peer.handle == nullptr) {
    const int error = greet(address, peer, GreetingHeader::Op::data, &from);
    return error == 0 ? base::Result<size_t>(length) : base::fail(error);
  }
  if (!peer.link->has_slot()) {
    const auto status = wait(deadline_of(options_.send_timeout, flags), [&] { return peer.link->has_slot(); });
    if (!status) {
      return base::fail(status.error().value);
    }
  }
  const int error = peer.link->send(peer.handle.get(), peer.qpn, from);
  return error == 0 ? base::Result<size_t>(length) : base::fail(error);
}

int Datagram::greet(const Address& to, const Peer& peer, GreetingHeader::Op op, IoCursor* bytes) {
  const GreetingHeader header{op, peer.link->qpn(), peer.link->local()};
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
  if (received_.empty()) {
    const auto status = wait(deadline_of(options_.receive_timeout, flags),
                             [&]() RINGBOLT_REQUIRES(lock_) { return !received_.empty(); });
    if (!status) {
      return base::fail(status.error().value);
    }
  }
  const Message& message = received_.front();
  const size_t length = std::min(to.left(), message.bytes.size());
  to.scatter(message.bytes.data(), length);
  if (from != nullptr) {
    *from = message.from;
  }
  const size_t told = (flags & MSG_TRUNC) != 0 ? message.bytes.size() : length;
  if ((flags & MSG_PEEK) == 0) {
    received_.pop_front();
  }
  return told;
}

}  // namespace ringbolt::rsocket
