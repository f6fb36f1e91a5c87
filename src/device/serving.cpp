// One-sided operations that the requester could not do itself, because it can't reach our memory: we do them for it,
// in a program's poll or on the service thread. The program may have unmapped the memory without deregistering it, and a
// peer's access must not end the program.

#include <atomic>

#include "base/guarded_copy.h"
#include "base/remote_access.h"
#include "device/queue_pair.h"

namespace ringbolt::device {

std::byte* QueuePair::find_local(uint64_t address, uint64_t length, uint32_t key, uint32_t access) const {
  link::Region region;
  if ((receive_attributes().qp_access_flags & access) != access || !process_.regions().find(key, region) ||
      region.pd_key != pd_.key || (region.access & access) != access || !region.holds(address, length) ||
      (region.bound_qpn != link::kAnyQueuePair && region.bound_qpn != qpn_)) {
    return nullptr;
  }
  return reinterpret_cast<std::byte*>(region.host_first + (address - region.first));
}

bool QueuePair::refuse(Connection& connection, link::Refusal refusal) {
  if (type_ == IBV_QPT_UC) {
    connection.receiver.release();  // UC drops what it must not do
    return true;
  }
  connection.receiver.refuse(refusal);
  if (connection.receiver.tell() && connection.remote != nullptr) {
    connection.remote->peer().ring();
  }
  enter_error(IBV_WC_WR_FLUSH_ERR);
  announce(refusal == link::Refusal::access ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR);
  return false;
}

bool QueuePair::serve_write(Connection& connection, const link::SlotHeader& header) {
  const auto fields = connection.receiver.fields<link::RemoteFields>();
  const std::byte* data = connection.receiver.payload(header);
  std::byte* target = find_local(fields.remote_address, header.length, fields.key, IBV_ACCESS_REMOTE_WRITE);
  if (data == nullptr || target == nullptr || !base::guarded_copy(target, data, header.length)) {
    return refuse(connection, link::Refusal::access);
  }
  connection.receiver.release();
  return true;
}

bool QueuePair::serve_read(Connection& connection) {
  const auto fields = connection.receiver.fields<link::RemoteFields>();
  const std::byte* source = find_local(fields.remote_address, fields.total, fields.key, IBV_ACCESS_REMOTE_READ);
  if (source == nullptr || fields.total > link::kLaneReadBufferBytes ||
      !base::guarded_copy(connection.receiver.read_buffer(), source, fields.total)) {
    return refuse(connection, link::Refusal::access);
  }
  connection.receiver.respond(fields.operation, 0);
  connection.receiver.release();
  return true;
}

bool QueuePair::serve_atomic(Connection& connection, const link::SlotHeader& header) {
  const auto fields = connection.receiver.fields<link::AtomicFields>();
  std::byte* target = find_local(fields.remote_address, sizeof(uint64_t), fields.key, IBV_ACCESS_REMOTE_ATOMIC);
  if (target == nullptr) {
    return refuse(connection, link::Refusal::access);
  }
  if (reinterpret_cast<uint64_t>(target) % sizeof(uint64_t) != 0) {
    return refuse(connection, link::Refusal::invalid_request);
  }
  if (!base::is_accessible(target, sizeof(uint64_t), true)) {
    return refuse(connection, link::Refusal::access);
  }
  std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t*>(target));
  uint64_t before = fields.compare_or_add;
  {
    const base::RemoteAccess by_peer;
    if ((header.flags & link::kSlotFetchAdd) != 0) {
      before = word.fetch_add(fields.compare_or_add);
    } else {
      word.compare_exchange_strong(before, fields.swap);
    }
  }
  connection.receiver.respond(fields.operation, before);
  connection.receiver.release();
  return true;
}

}  // namespace ringbolt::device
