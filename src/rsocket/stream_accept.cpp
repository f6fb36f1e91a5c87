#include <sys/socket.h>

#include "rsocket/stream.h"
#include "rsocket/stream_wait.h"

namespace ringbolt::rsocket {

Status Stream::listen(int backlog) {
  const base::LockGuard lock(lock_);
  if (phase_ == Phase::listening) {
    return {};
  }
  if (phase_ != Phase::fresh && phase_ != Phase::bound) {
    return base::fail(EINVAL);
  }
  if (rdma_listen(link_.id(), backlog) != 0) {
    return base::fail(errno == 0 ? EADDRINUSE : errno);
  }
  phase_ = Phase::listening;
  return {};
}

/// Never waits for the peer's last word, so that one thread can connect to itself: the new socket does, when it is
/// used.
base::Result<std::shared_ptr<Socket>> Stream::accept() {
  std::optional<Request> request;
  Options options;
  {
    const base::LockGuard lock(lock_);
    if (phase_ != Phase::listening) {
      return base::fail(EINVAL);
    }
    const auto status = wait(deadline_of(options_.receive_timeout, 0), [this]() RINGBOLT_REQUIRES(lock_) {
      return !requests_.empty() || phase_ != Phase::listening;
    });
    if (!status) {
      return base::fail(status.error().value);
    }
    if (requests_.empty()) {
      return base::fail(phase_ == Phase::failed ? error_ : EINVAL);
    }
    request.emplace(std::move(requests_.front()));
    requests_.pop_front();
    options = options_;
  }
  options.route.clear();
  const int family = rdma_get_peer_addr(request->link.id())->sa_family;
  const std::shared_ptr<Stream> made(new Stream(std::move(request->link), family, options));
  const auto accepted = made->become_accepted(request->param, request->peer);
  if (!accepted) {
    return base::fail(accepted.error().value);  // destroying the id rejects the request
  }
  return std::shared_ptr<Socket>(made);
}

Status Stream::become_accepted(const rdma_conn_param& request, const ConnectionData& peer) {
  const base::LockGuard lock(lock_);
  peer_ = Address::from(*rdma_get_peer_addr(link_.id()));
  auto status = make_connection();
  if (status) {
    status = connection_->join(peer);
  }
  if (!status) {
    return status;
  }
  const auto data = connection_->local_data().emit();
  rdma_conn_param param = request;
  param.private_data = data.data();
  param.private_data_len = static_cast<uint8_t>(data.size());
  param.rnr_retry_count = 7;
  if (rdma_accept(link_.id(), &param) != 0) {
    return base::fail(errno == 0 ? ECONNABORTED : errno);
  }
  phase_ = Phase::accepting;
  return {};
}

/// Moves the request to a channel of its own at once, so that whatever else happens to it is told there.
void Stream::take_request(CmEvent event) {
  rdma_conn_param param = event->param.conn;
  const auto* bytes = static_cast<const std::byte*>(param.private_data);
  const auto peer = ConnectionData::parse({bytes, bytes == nullptr ? size_t{0} : param.private_data_len});
  rdma_cm_id* id = event->id;
  param.private_data = nullptr;
  event.reset();  // neither moving nor destroying an id goes on before its events are acknowledged
  auto link = CmLink::adopt(id);
  if (link && peer && phase_ == Phase::listening) {
    requests_.push_back({std::move(*link), param, *peer});
  } else if (link) {
    rdma_reject(id, nullptr, 0);  // somebody who speaks no rsockets
  }
}

}  // namespace ringbolt::rsocket
