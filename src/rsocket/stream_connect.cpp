#include <netinet/in.h>
#include <sys/socket.h>

#include "rsocket/stream.h"
#include "rsocket/stream_wait.h"

namespace ringbolt::rsocket {
namespace {

constexpr int kFirstTimeoutMs = 1000;  ///< of a step; each further try waits twice as long
constexpr uint8_t kMostRetries = 7;

int errno_or(int otherwise) { return errno == 0 ? otherwise : errno; }

}  // namespace

Status Stream::bind(const Address& address) {
  const base::LockGuard lock(lock_);
  if (phase_ != Phase::fresh) {
    return base::fail(EINVAL);
  }
  Address copy = address;
  if (rdma_bind_addr(link_.id(), copy.get()) != 0) {
    return base::fail(errno_or(EADDRNOTAVAIL));
  }
  phase_ = Phase::bound;
  return {};
}

Status Stream::connect(const Address& address) {
  const base::LockGuard lock(lock_);
  if (is_opening()) {
    return base::fail(EALREADY);
  }
  if (phase_ == Phase::connected || phase_ == Phase::closed) {
    return base::fail(EISCONN);
  }
  if (phase_ == Phase::listening) {
    return base::fail(EINVAL);
  }
  if (phase_ == Phase::failed) {
    return base::fail(take_error(ECONNABORTED));  // the connection manager's id is used up: a new socket is needed
  }
  peer_ = address;
  attempts_ = 0;
  resolve_address();
  const auto status = await_connected(deadline_of(options_.send_timeout, 0));
  if (!status && status.error().value == EAGAIN) {
    return base::fail(EINPROGRESS);
  }
  return status;
}

Status Stream::await_connected(const Deadline& deadline) {
  if (phase_ < Phase::resolving_address) {
    return base::fail(ENOTCONN);
  }
  if (is_opening()) {
    const auto status = wait(deadline, [this]() RINGBOLT_REQUIRES(lock_) { return !is_opening(); });
    if (!status) {
      return status;
    }
    if (phase_ == Phase::failed) {
      return base::fail(take_error(error_));
    }
  }
  if (!connection_.has_value()) {
    return base::fail(phase_ == Phase::failed ? take_error(error_) : ENOTCONN);
  }
  return {};
}

void Stream::resolve_address() {
  phase_ = Phase::resolving_address;
  if (rdma_resolve_addr(link_.id(), nullptr, peer_.get(), kFirstTimeoutMs << attempts_++) != 0) {
    fail(errno_or(ENETUNREACH));
  }
}

void Stream::resolve_route() {
  phase_ = Phase::resolving_route;
  const int timeout_ms = kFirstTimeoutMs << attempts_++;
  if (!options_.route.empty()) {
    const size_t bytes = options_.route.size() * sizeof(ibv_path_data);
    if (rdma_set_option(link_.id(), RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, options_.route.data(), bytes) == 0) {
      return;  // the event comes all the same
    }
  }
  if (rdma_resolve_route(link_.id(), timeout_ms) != 0) {
    fail(errno_or(ENETUNREACH));
  }
}

Status Stream::make_connection() {
  try {
    connection_.emplace(link_.id(), options_.settings);
  } catch (const base::Error& error) {
    return base::fail(error.errno_value());
  } catch (const std::bad_alloc&) {
    return base::fail(ENOMEM);
  }
  options_.settings = connection_->settings();
  heard_at_ns_ = base::now_ns();
  return {};
}

void Stream::request_connection() {
  const auto made = make_connection();
  if (!made) {
    fail(made.error().value);
    return;
  }
  const auto data = connection_->local_data().emit();
  rdma_conn_param param{};
  param.private_data = data.data();
  param.private_data_len = static_cast<uint8_t>(data.size());
  param.flow_control = 1;
  param.retry_count = kMostRetries;
  param.rnr_retry_count = kMostRetries;
  phase_ = Phase::connecting;
  if (rdma_connect(link_.id(), &param) != 0) {
    fail(errno_or(ECONNREFUSED));
  }
}

Status Stream::join(const void* private_data, size_t bytes) {
  const auto peer =
      ConnectionData::parse({static_cast<const std::byte*>(private_data), private_data == nullptr ? 0 : bytes});
  return peer ? connection_->join(*peer) : base::fail(peer.error().value);
}

}  // namespace ringbolt::rsocket
