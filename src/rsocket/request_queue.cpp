#include "rsocket/request_queue.h"

#include <utility>

namespace ringbolt::rsocket {

void RequestQueue::take(CmEvent event, bool is_open) {
  rdma_conn_param param = event->param.conn;
  const auto* bytes = static_cast<const std::byte*>(param.private_data);
  // Before the event is acknowledged, with which its private data go.
  const auto peer = ConnectionData::parse({bytes, bytes == nullptr ? size_t{0} : param.private_data_len});
  rdma_cm_id* id = event->id;
  param.private_data = nullptr;
  event.reset();  // neither moving nor destroying an id goes on before its events are acknowledged
  auto link = CmLink::adopt(id);
  if (link && peer && is_open) {
    requests_.push_back({std::move(*link), param, *peer});
  } else if (link) {
    link->reject();
  }
}

Request RequestQueue::pop() {
  Request oldest = std::move(requests_.front());
  requests_.pop_front();
  return oldest;
}

}  // namespace ringbolt::rsocket
