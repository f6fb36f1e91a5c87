#include "rsocket/cm_link.h"

#include <fcntl.h>

namespace ringbolt::rsocket {
namespace {

int errno_or(int otherwise) { return errno == 0 ? otherwise : errno; }

}  // namespace

base::Result<EventChannel> CmLink::make_channel() {
  EventChannel channel(rdma_create_event_channel());
  if (channel == nullptr) {
    return base::fail(errno_or(ENODEV));
  }
  const int flags = ::fcntl(channel->fd, F_GETFL);
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
