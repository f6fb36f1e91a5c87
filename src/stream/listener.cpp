#include "stream/listener.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "base/error.h"

namespace ringbolt::stream {
namespace {

// Below a second, as timespec(3type) wants of its nanoseconds. Another thread may have taken the event: the
// descriptor tells all, and one gets it.
constexpr uint64_t kLongestWaitNs = 500'000'000;  // without a look
constexpr int kMostTurnedAway = 64;  // events of one call that brought no stream, before it looks at its deadline

void wait_readable(int fd, uint64_t until_ns) {
  const uint64_t now_ns = base::now_ns();
  const uint64_t ns = std::min(until_ns - std::min(until_ns, now_ns), kLongestWaitNs);
  const timespec limit{0, static_cast<long>(ns)};
  pollfd readable{fd, POLLIN, 0};
  ::ppoll(&readable, 1, &limit, nullptr);
}

}  // namespace

Listener::Listener(std::shared_ptr<Service> service, const std::string& host, uint16_t port,
                   const ListenerSettings& settings)
    : service_(std::move(service)),
      settings_(settings),
      allowed_(settings.allowed),
      tally_(std::make_shared<ListenerTally>()),
      channel_(service_->manager()),
      port_(port) {
  if (!settings.stream.receive_memory.empty()) {
    throw base::Error(EINVAL, "listen", "receive_memory", "it can't be shared by the streams of a listener");
  }
  if (!host.empty()) {
    listen_at(addresses_of(host, port, Deadline::in_ms(settings.stream.connect_timeout_ms)).front(), false);
    return;
  }
  // As stock servers do it: one for each family, at the same port.
  const auto both = any_addresses(port);
  listen_at(both[0], true);
  Address ipv6 = both[1];
  ipv6.set_port(port_);
  try {
    listen_at(ipv6, true);
  } catch (const base::Error&) {
    // A machine without IPv6.
  }
}

void Listener::listen_at(Address address, bool is_family_only) {
  const verbs::CmCalls& calls = service_->manager().calls();
  verbs::CmIdentifier id(service_->manager(), channel_);
  const auto refuse = [&](const char* call) {
    const int error = errno == 0 ? EADDRNOTAVAIL : errno;
    throw base::Error(error, call, address.text(),
                      error == EADDRINUSE ? "another program listens there over RDMA: take another port"
                                          : "is it the address of an RDMA device of this machine? `ringbolt devices` "
                                            "shows them");
  };
  errno = 0;
  if (is_family_only) {
    int is_on = 1;
    // Where it is not known, IPv6 takes the requests of both.
    calls.set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &is_on, sizeof is_on);
  }
  errno = 0;
  if (calls.bind_addr(id.get(), address.get()) != 0) {
    refuse("rdma_bind_addr");
  }
  if (calls.listen(id.get(), settings_.backlog) != 0) {
    refuse("rdma_listen");
  }
  port_ = Address(*rdma_get_local_addr(id.get())).port();
  ids_.push_back(std::move(id));
}

verbs::CmEvent Listener::next() {
  const base::LockGuard lock(mutex_);
  return channel_.next();
}

base::Result<std::unique_ptr<Stream>> Listener::accept(const Deadline& deadline) {
  for (int turned_away = 0;; ++turned_away) {
    // Requests that are rejected may come without end. Those that are left keep the descriptor readable.
    const bool is_late = turned_away >= kMostTurnedAway && deadline.is_over(base::now_ns());
    if (auto event = is_late ? verbs::CmEvent() : next()) {
      const bool is_request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
      Request request(is_request ? event->id : nullptr, verbs::CloseCm(service_->manager()));
      event.reset();  // neither moving nor destroying an identifier goes on before its events are acknowledged
      if (is_request) {
        if (auto made = answer(std::move(request))) {
          return made;
        }
      }
    } else if (deadline.is_over(base::now_ns())) {
      return base::fail(deadline.is_now() ? EAGAIN : ETIMEDOUT);
    } else {
      wait_readable(channel_.fd(), deadline.ns());
    }
  }
}

CloseReason Listener::objection_to(const Address& peer) const {
  if (!allowed_.allows(peer)) {
    return CloseReason::not_allowed;
  }
  // Relaxed, a count alone: two threads that accept at once may come to one more than the limit.
  const bool is_full = tally_->streams.load(std::memory_order_relaxed) >= settings_.max_streams;
  return is_full ? CloseReason::too_many : CloseReason::none;
}

/// Null: it was rejected.
std::unique_ptr<Stream> Listener::answer(Request request) {
  const Address peer(*rdma_get_peer_addr(request.get()));
  CloseReason reason = objection_to(peer);
  if (reason == CloseReason::none) {
    try {
      return Stream::accept(service_, std::move(request), tally_, settings_.stream);
    } catch (const base::Error& error) {
      reason = error.errno_value() == ENOBUFS ? CloseReason::over_budget : CloseReason::no_resources;
    } catch (const std::bad_alloc&) {
      reason = CloseReason::no_resources;
    }
  } else {
    service_->manager().calls().reject(request.get(), nullptr, 0);
  }
  tally_->closes.add(reason);
  tally_->rejections.add(reason);
  service_->tally().add(reason);
  return nullptr;
}

}  // namespace ringbolt::stream
