// The texts that programs print for numbers. Scripts look for them, so they are the names everybody uses.

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>

namespace {

template <size_t kCount>
const char* name_or(const std::array<const char*, kCount>& names, int value, const char* otherwise) {
  return value >= 0 && static_cast<size_t>(value) < kCount ? names[static_cast<size_t>(value)] : otherwise;
}

constexpr std::array kPortStates = {"no state change (NOP)", "down", "init", "armed", "active", "active defer"};

constexpr std::array kEvents = {
    "CQ error",
    "local work queue catastrophic error",
    "invalid request local work queue error",
    "local access violation work queue error",
    "communication established",
    "send queue drained",
    "path migrated",
    "path migration request error",
    "local catastrophic error",
    "port active",
    "port error",
    "LID change",
    "P_Key change",
    "SM change",
    "SRQ catastrophic error",
    "SRQ limit reached",
    "last WQE reached",
    "client reregistration",
    "GID table change",
    "WQ fatal",
};
static_assert(kEvents.size() == IBV_EVENT_WQ_FATAL + 1);

constexpr std::array kStatuses = {
    "success",
    "local length error",
    "local QP operation error",
    "local EE context operation error",
    "local protection error",
    "Work Request Flushed Error",
    "memory management operation error",
    "bad response error",
    "local access error",
    "remote invalid request error",
    "remote access error",
    "remote operation error",
    "transport retry counter exceeded",
    "RNR retry counter exceeded",
    "local RDD violation error",
    "remote invalid RD request",
    "aborted error",
    "invalid EE context number",
    "invalid EE context state",
    "fatal error",
    "response timeout error",
    "general error",
    "TM error",
    "TM software rendezvous",
};
static_assert(kStatuses.size() == IBV_WC_TM_RNDV_INCOMPLETE + 1);

}  // namespace

const char* ibv_node_type_str(ibv_node_type node_type) {
  switch (node_type) {
    case IBV_NODE_CA:
      return "InfiniBand channel adapter";
    case IBV_NODE_SWITCH:
      return "InfiniBand switch";
    case IBV_NODE_ROUTER:
      return "InfiniBand router";
    case IBV_NODE_RNIC:
      return "iWARP NIC";
    case IBV_NODE_USNIC:
      return "usNIC";
    case IBV_NODE_USNIC_UDP:
      return "usNIC UDP";
    case IBV_NODE_UNSPECIFIED:
      return "unspecified";
    case IBV_NODE_UNKNOWN:
      break;
  }
  return "unknown";
}

const char* ibv_port_state_str(ibv_port_state port_state) { return name_or(kPortStates, port_state, "unknown"); }

const char* ibv_event_type_str(ibv_event_type event) { return name_or(kEvents, event, "unknown"); }

const char* ibv_wc_status_str(ibv_wc_status status) { return name_or(kStatuses, status, "unknown"); }
