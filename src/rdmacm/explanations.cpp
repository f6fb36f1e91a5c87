#include "rdmacm/explanations.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "wire/cm_reject.h"

namespace ringbolt::rdmacm {
namespace {

// Completes "the identifier is ...".
const char* phase_text(Id::Phase phase) {
  switch (phase) {
    case Id::Phase::idle:
      return "new";
    case Id::Phase::bound:
      return "bound to an address";
    case Id::Phase::address_resolved:
      return "resolved to an address";
    case Id::Phase::route_resolved:
      return "resolved to a route";
    case Id::Phase::connecting:
      return "connecting or connected";
    case Id::Phase::listening:
      return "listening";
    case Id::Phase::ended:
      return "at its end: its connection was refused, or nobody answered";
  }
  return "?";
}

// Reasons of InfiniBand's REJ message; in words those that our own stack, the kernel's and its clients send.
base::Explanation why_rejected(const Id& id, int reason) {
  const std::string peer = text_of(id.c.route.addr.dst_addr);
  switch (reason) {
    case wire::kRejInvalidServiceId:
      return {
          fmt::format("nobody listens at {} (reason 8, invalid service ID)", peer),
          "start the server before, see that its rdma_listen has succeeded, and that both use one port and port space"};
    case wire::kRejConsumer:
      return {
          fmt::format("the program at {} has called rdma_reject, or could not set its queue pair up (reason 28)", peer),
          "look at the private data of this event and at the server's output"};
    case wire::kRejNoQp:
    case wire::kRejNoResources:
      return {fmt::format("{} has no room for one more connection (reason {})", peer, reason),
              "raise the backlog of rdma_listen there, or take requests faster"};
    case wire::kRejTimeout:
      return {fmt::format("{} has waited in vain for the next step (reason 4)", peer),
              "take CONNECT_RESPONSE with rdma_get_cm_event, and call rdma_establish if the queue pair is your own"};
    case wire::kRejStaleConnection:
      return {fmt::format("{} has a connection of the same queue pair still (reason 10)", peer),
              "end the connection before, or connect with a new queue pair"};
    default:
      return {fmt::format("{} has refused with reason {} (InfiniBand specification, table 107)", peer, reason),
              "look at the server's output"};
  }
}

}  // namespace

std::string text_of(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.sa_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &ipv4.sin_addr, text.data(), text.size());
    return fmt::format("{}:{}", text.data(), ntohs(ipv4.sin_port));
  }
  if (address.sa_family == AF_INET6) {
    const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(address);
    ::inet_ntop(AF_INET6, &ipv6.sin6_addr, text.data(), text.size());
    return fmt::format("[{}]:{}", text.data(), ntohs(ipv6.sin6_port));
  }
  return fmt::format("nowhere (family {})", address.sa_family);
}

// Returns EINVAL, as rdma-core does; the caller sets errno by result().
int wrong_phase(const char* call, const Id& id, const char* needs) {
  const auto phase = id.phase;
  return base::refused(EINVAL, call, [&] {
    return base::Explanation{fmt::format("the identifier is {} (step {}), and has to be {}", phase_text(phase),
                                         static_cast<int>(phase), needs),
                             "take the event of the step before with rdma_get_cm_event, then call this once"};
  });
}

int too_much_data(const char* call, size_t given, size_t room) {
  return base::refused(EINVAL, call, [&] {
    return base::Explanation{fmt::format("{} bytes of private data, and there is room for {}", given, room),
                             "send the rest in the first message"};
  });
}

// The caller holds the lock, as the header says; NOT_ANALYSED, as a lambda can't say it. Nothing is formatted unless
// RINGBOLT_EXPLAIN asks for it.
void explain_event(const Id& id, const rdma_cm_event& event) noexcept {
  base::when_explaining([&]() RINGBOLT_NOT_ANALYSED {
    base::Incident incident;
    incident.call = rdma_event_str(event.event);
    incident.object = "the connection to " + text_of(id.c.route.addr.dst_addr);
    incident.status = fmt::format("status {}", event.status);
    incident.posted = id.asked_at;
    incident.is_call = true;
    // Negative errnos, as the kernel gives; REJECTED has a reason instead, and UNREACHABLE of datagrams a SIDR
    // status.
    const int error = std::abs(event.status);
    base::Explanation why{fmt::format("{} ({})", std::strerror(error), error), "look at the other side's output"};
    if (event.event == RDMA_CM_EVENT_REJECTED) {
      why = why_rejected(id, event.status);
    } else if (event.event == RDMA_CM_EVENT_UNREACHABLE && id.is_datagram() && event.status > 0) {
      why = {
          fmt::format("nobody there takes datagrams at that port, or it was rejected (SIDR status {})", event.status),
          "start the server before, with RDMA_PS_UDP and the same port"};
    } else if (event.event == RDMA_CM_EVENT_UNREACHABLE) {
      why = {fmt::format("no answer of {} ({})", text_of(id.c.route.addr.dst_addr), std::strerror(error)),
             "see that the other machine has a device on that network, that its program gets on, and that UDP 4791 "
             "passes"};
    } else if (event.event == RDMA_CM_EVENT_ADDR_ERROR) {
      why = {fmt::format("no device leads to {} ({})", text_of(id.c.route.addr.dst_addr), std::strerror(error)),
             "take an address of a network that `ringbolt devices` shows"};
    } else if (event.event == RDMA_CM_EVENT_CONNECT_ERROR) {
      why = {fmt::format("the queue pair could not be made ready for it ({})", std::strerror(error)),
             "look at the line about ibv_modify_qp before this one"};
    }
    base::explain(incident, why);
  });
}

}  // namespace ringbolt::rdmacm
