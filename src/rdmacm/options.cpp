// Options of identifiers, names of events, the device list, and what is refused.

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/c_border.h"
#include "rdmacm/connection_manager.h"
#include "rdmacm/identifiers.h"

namespace ringbolt::rdmacm {
namespace {

// Five bits (ibv_modify_qp(3), timeout).
constexpr uint8_t kMaxAckTimeout = 31;

template <class Value>
// Exactly its size, as the kernel wants it.
std::optional<Value> read_value(const void* from, size_t length) {
  if (from == nullptr || length != sizeof(Value)) {
    return std::nullopt;
  }
  Value value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

int set_option(Id& id, int name, const void* from, size_t length) RINGBOLT_REQUIRES(manager_lock) {
  const auto number = read_value<int>(from, length);
  const auto byte = read_value<uint8_t>(from, length);
  switch (name) {
    case RDMA_OPTION_ID_TOS:
      id.type_of_service = byte.value_or(id.type_of_service);
      return byte ? 0 : EINVAL;
    case RDMA_OPTION_ID_REUSEADDR:
      id.reuses_address = number ? *number != 0 : id.reuses_address;
      return number ? 0 : EINVAL;
    case RDMA_OPTION_ID_AFONLY:
      if (!number || id.is_bound) {
        return EINVAL;
      }
      id.is_family_only = *number != 0;
      return 0;
    case RDMA_OPTION_ID_ACK_TIMEOUT:
      if (!byte || *byte > kMaxAckTimeout) {
        return EINVAL;
      }
      id.ack_timeout = *byte;
      return 0;
    default:
      // As the kernel answers for an option that it does not know.
      return ENOSYS;
  }
}

}  // namespace
}  // namespace ringbolt::rdmacm

using ringbolt::rdmacm::ConnectionManager;
using ringbolt::rdmacm::Id;
using ringbolt::rdmacm::result;
namespace base = ringbolt::base;

extern "C" {

int rdma_set_option(rdma_cm_id* c, int level, int name, void* value, size_t length) try {
  Id& id = Id::of(c);
  if (!ringbolt::rdmacm::is_ours(id)) {
    return -1;
  }
  const base::LockGuard guard(id.manager->mutex());
  // RDMA_OPTION_IB_PATH replaces the path record: on RoCE the route is always found locally.
  return result(level == RDMA_OPTION_ID ? ringbolt::rdmacm::set_option(id, name, value, length) : ENOSYS);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

const char* rdma_event_str(rdma_cm_event_type event) {
  static constexpr const char* kNames[] = {
      "RDMA_CM_EVENT_ADDR_RESOLVED",  "RDMA_CM_EVENT_ADDR_ERROR",        "RDMA_CM_EVENT_ROUTE_RESOLVED",
      "RDMA_CM_EVENT_ROUTE_ERROR",    "RDMA_CM_EVENT_CONNECT_REQUEST",   "RDMA_CM_EVENT_CONNECT_RESPONSE",
      "RDMA_CM_EVENT_CONNECT_ERROR",  "RDMA_CM_EVENT_UNREACHABLE",       "RDMA_CM_EVENT_REJECTED",
      "RDMA_CM_EVENT_ESTABLISHED",    "RDMA_CM_EVENT_DISCONNECTED",      "RDMA_CM_EVENT_DEVICE_REMOVAL",
      "RDMA_CM_EVENT_MULTICAST_JOIN", "RDMA_CM_EVENT_MULTICAST_ERROR",   "RDMA_CM_EVENT_ADDR_CHANGE",
      "RDMA_CM_EVENT_TIMEWAIT_EXIT",  "RDMA_CM_EVENT_ADDRINFO_RESOLVED", "RDMA_CM_EVENT_ADDRINFO_ERROR",
      "RDMA_CM_EVENT_USER",           "RDMA_CM_EVENT_INTERNAL"};
  // Programs may ask for any number.
  const auto index = static_cast<size_t>(event);
  return index < std::size(kNames) ? kNames[index] : "UNKNOWN EVENT";
}

ibv_context** rdma_get_devices(int* count) try {
  ConnectionManager& manager = ConnectionManager::get();
  const base::LockGuard guard(manager.mutex());
  if (const int error = manager.start()) {
    errno = error;
    return nullptr;
  }
  const size_t size = manager.devices().size();
  // Ends with a null. The contexts are the library's, and stay open.
  auto** list = static_cast<ibv_context**>(std::calloc(size + 1, sizeof(ibv_context*)));
  if (list == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  for (uint32_t i = 0; i < size; ++i) {
    list[i] = manager.devices().at(i).context;
  }
  if (count != nullptr) {
    *count = static_cast<int>(size);
  }
  return list;
} catch (...) {
  return ringbolt::base::caught_null();
}

void rdma_free_devices(ibv_context** list) { std::free(list); }

// No multicast: the device has no groups, so joining one is refused at once.
int rdma_join_multicast(rdma_cm_id*, sockaddr*, void*) { return result(EOPNOTSUPP); }
int rdma_join_multicast_ex(rdma_cm_id*, rdma_cm_join_mc_attr_ex*, void*) { return result(EOPNOTSUPP); }
int rdma_leave_multicast(rdma_cm_id*, sockaddr*) { return result(EADDRNOTAVAIL); }

// No enhanced connection establishment: it is for vendors' own options.
int rdma_set_local_ece(rdma_cm_id*, ibv_ece*) { return result(EOPNOTSUPP); }
int rdma_get_remote_ece(rdma_cm_id*, ibv_ece*) { return result(EOPNOTSUPP); }

}  // extern "C"
