#include "rsocket/cm_link.h"

#include <fcntl.h>

#include <cerrno>

namespace ringbolt::rsocket {
namespace {

constexpr uint8_t kMostRetries = 7;  ///< of RNR: for ever

int errno_or(int otherwise) { return errno == 0 ? otherwise : errno; }

/// What a call of rdma_cm has answered.
int outcome(int answer, int otherwise) { return answer == 0 ? 0 : errno_or(otherwise); }

}  // namespace

base::Result<EventChannel> CmLink::make_channel() {
  EventChannel channel(rdma_create_event_channel());
  if (channel == nullptr) {
    return base::fail(errno_or(ENODEV));
  }
  const int flags = ::fcntl(channel->fd, F_GETFL);
  // So that next() never waits (rdma_get_cm_event(3)).
  if (flags < 0 || ::fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return base::fail(errno);
  }
  return channel;
}

base::Result<CmLink> CmLink::create(rdma_port_space space) {
  auto channel = make_channel();
  if (!channel) {
    return base::fail(channel.error().value);
  }
  CmLink link;
  link.channel_ = std::move(*channel);
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(link.channel_.get(), &id, nullptr, space) != 0) {
    return base::fail(errno_or(ENODEV));
  }
  link.id_.reset(id);
  return link;
}

base::Result<CmLink> CmLink::adopt(rdma_cm_id* id) {
  // From here on: whatever fails destroys it, and so rejects the request.
  CmId owned(id);
  auto channel = make_channel();
  if (!channel) {
    return base::fail(channel.error().value);
  }
  if (rdma_migrate_id(id, channel->get()) != 0) {
    return base::fail(errno_or(EIO));
  }
  CmLink link;
  link.channel_ = std::move(*channel);
  link.id_ = std::move(owned);
  return link;
}

CmEvent CmLink::next() const {
  rdma_cm_event* event = nullptr;
  return CmEvent(rdma_get_cm_event(channel_.get(), &event) == 0 ? event : nullptr);
}

int CmLink::bind(const Address& address) const {
  Address copy = address;
  return outcome(rdma_bind_addr(id_.get(), copy.get()), EADDRNOTAVAIL);
}

int CmLink::listen(int backlog) const { return outcome(rdma_listen(id_.get(), backlog), EADDRINUSE); }

int CmLink::set_flag(int option, int value) const {
  return outcome(rdma_set_option(id_.get(), RDMA_OPTION_ID, option, &value, sizeof value), EINVAL);
}

int CmLink::resolve_address(const Address& to, int timeout_ms) const {
  Address copy = to;
  return outcome(rdma_resolve_addr(id_.get(), nullptr, copy.get(), timeout_ms), ENETUNREACH);
}

int CmLink::resolve_route(std::span<const ibv_path_data> chosen, int timeout_ms) const {
  // The library only reads them.
  auto* const paths = const_cast<ibv_path_data*>(chosen.data());
  if (!chosen.empty() &&
      rdma_set_option(id_.get(), RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, paths, chosen.size_bytes()) == 0) {
    return 0;  // the event comes all the same
  }
  return outcome(rdma_resolve_route(id_.get(), timeout_ms), ENETUNREACH);
}

int CmLink::connect(std::span<const std::byte> data) const {
  rdma_conn_param param{};
  param.private_data = data.data();
  param.private_data_len = static_cast<uint8_t>(data.size());
  param.flow_control = 1;
  param.retry_count = kMostRetries;
  param.rnr_retry_count = kMostRetries;
  return outcome(rdma_connect(id_.get(), &param), ECONNREFUSED);
}

int CmLink::accept(const rdma_conn_param& request, std::span<const std::byte> data) const {
  rdma_conn_param param = request;
  param.private_data = data.data();
  param.private_data_len = static_cast<uint8_t>(data.size());
  param.rnr_retry_count = kMostRetries;
  return outcome(rdma_accept(id_.get(), &param), ECONNABORTED);
}

int error_of(const rdma_cm_event& event) {
  switch (event.event) {
    case RDMA_CM_EVENT_REJECTED:
      return ECONNREFUSED;
    case RDMA_CM_EVENT_DISCONNECTED:
      return ECONNRESET;
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return ENODEV;
    default:
      // Negative: an errno. Positive: a code of the wire protocol.
      return event.status < 0 ? -event.status : event.event == RDMA_CM_EVENT_UNREACHABLE ? ETIMEDOUT : ECONNABORTED;
  }
}

}  // namespace ringbolt::rsocket
