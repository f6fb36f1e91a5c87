// Requests: REQ and SIDR_REQ, and who takes them.

#include <algorithm>
#include <cerrno>

#include "cm/engine.h"
#include "cm/timing.h"
#include "wire/cm_private.h"

namespace ringbolt::cm {
namespace {

// The default partition, of which RoCE has no other; the bit tells full members from limited ones (InfiniBand
// specification, 10.9).
constexpr uint16_t kDefaultPkey = 0xffff;
constexpr uint16_t kMembershipBit = 0x8000;

bool matches(const Listener& listener, const Arrival& arrival, uint64_t service_id, const wire::CmIpHeader& header) {
  if (listener.service_id != service_id || (listener.is_on_port && listener.port != arrival.path.port)) {
    return false;
  }
  if (!listener.is_any) {
    return listener.address == header.destination;
  }
  return wire::is_ipv4(header.destination) ? listener.is_ipv4 || !listener.is_family_only : !listener.is_ipv4;
}

// RDMA CM puts the IP addresses in front of the private data (InfiniBand specification, annex A11).
bool has_ip_header(uint64_t service_id) { return wire::cm_port_space(service_id) != 0; }

}  // namespace

void Engine::answer_request(const Arrival& arrival, uint64_t tid, const wire::CmMessage& message) {
  Outgoing out{arrival.path, {}};
  wire::emit(wire::CmMad{tid, message}, out.bytes);
  outgoing_.push_back(out);
}

void Engine::refuse(const Arrival& arrival, uint64_t tid, uint32_t remote_id, wire::CmAnswered answered,
                    uint16_t reason, std::span<const uint8_t> info, Handle local_id) {
  wire::CmRej message;
  message.local_id = local_id;
  message.remote_id = remote_id;
  message.answered = answered;
  message.reason = reason;
  message.info_length = static_cast<uint8_t>(info.size());
  std::ranges::transform(info, message.info.begin(), [](uint8_t byte) { return std::byte{byte}; });
  answer_request(arrival, tid, message);
}

bool Engine::replace_stale(uint64_t now_ns, uint64_t guid, uint32_t qpn, Handle except) {
  const auto found = by_remote_qpn_.find({guid, qpn});
  if (found == by_remote_qpn_.end() || found->second == except) {
    return false;
  }
  Connection& old = connections_.at(found->second);
  // In any other state it is on its way to an end already.
  if (old.state == State::established || old.state == State::rep_sent || old.state == State::mra_rep_received) {
    send_disconnect(now_ns, old, true);
  }
  return true;
}

Engine::Verdict Engine::judge(const Arrival& arrival, uint64_t service_id, std::span<const std::byte> private_data) {
  // Told apart, since the peer's program is: no such service, or none at that address.
  const bool is_known =
      std::ranges::any_of(listeners_, [&](const Listener& one) { return one.service_id == service_id; });
  if (!is_known) {
    return {nullptr, wire::kRejInvalidServiceId};
  }
  wire::CmIpHeader header;
  if (has_ip_header(service_id)) {
    const auto parsed = wire::parse_cm_ip_header(private_data.first<wire::kCmIpHeaderBytes>());
    if (!parsed || !host_.is_local(arrival.path.port, parsed->destination) ||
        // As Linux does: an answer that would leave by another port would not reach the peer's queue pair.
        !host_.routes_back(arrival.path.port, parsed->destination, parsed->source)) {
      return {nullptr, wire::kRejConsumer};
    }
    header = *parsed;
  }
  // The most particular one: an address before a wildcard, a wildcard of the family before the one that takes both.
  Listener* best = nullptr;
  const auto rank = [&](const Listener& one) {
    return !one.is_any ? 2 : (one.is_ipv4 == wire::is_ipv4(header.destination) ? 1 : 0);
  };
  for (Listener& one : listeners_) {
    if (matches(one, arrival, service_id, header) && (best == nullptr || rank(one) > rank(*best))) {
      best = &one;
    }
  }
  return {best, wire::kRejConsumer};
}

void Engine::on(uint64_t now_ns, const Arrival& arrival, uint64_t tid, const wire::CmReq& request) {
  if (const auto known = by_remote_id_.find({request.local_guid, request.local_id}); known != by_remote_id_.end()) {
    // by_remote_id_ only names connections that are there: leave_remote() comes before erase().
    const Connection& connection = connections_.at(known->second);
    if (connection.state == State::req_received) {
      send_once(connection, wire::CmMra{connection.id, connection.remote_id, wire::CmAnswered::req, kMraTimeout, {}});
    }
    return;  // a repetition; what answers it is repeated by our own timer
  }
  // The peer has begun anew, and we have not heard of the end.
  if (replace_stale(now_ns, request.local_guid, request.local_qpn, 0)) {
    refuse(arrival, tid, request.local_id, wire::CmAnswered::req, wire::kRejStaleConnection, {});
    return;
  }
  Verdict verdict = judge(arrival, request.service_id, request.private_data);
  if (verdict.listener != nullptr && (!host_.owns_gid(arrival.path.port, request.primary.remote_gid) ||
                                      (request.pkey | kMembershipBit) != kDefaultPkey)) {
    const wire::Address gid = host_.first_gid(arrival.path.port);
    refuse(arrival, tid, request.local_id, wire::CmAnswered::req, wire::kRejInvalidGid, gid);
    return;
  }
  const bool is_tcp = wire::cm_port_space(request.service_id) == wire::kPortSpaceTcp;
  if (verdict.listener == nullptr || (is_tcp && request.transport != wire::CmTransport::rc)) {
    refuse(arrival, tid, request.local_id, wire::CmAnswered::req,
           verdict.listener == nullptr ? verdict.reason : wire::kRejConsumer, {});
    return;
  }
  // Dropped, not refused: the program may fetch some before the peer's next try.
  if (verdict.listener->waiting >= verdict.listener->backlog) {
    return;  // the peer asks again
  }
  Connection& connection = create(arrival.path);
  connection.state = State::req_received;
  connection.transaction_id = tid;
  connection.remote_id = request.local_id;
  connection.remote_guid = request.local_guid;
  connection.remote_qpn = request.local_qpn;
  connection.service_id = request.service_id;
  connection.peer_slot = arrival.peer_slot;
  connection.listener = verdict.listener->cookie;
  connection.wait_ns = code_ns(request.local_cm_timeout);
  connection.max_retries = request.max_cm_retries;
  // The ACK timeout is about twice the lifetime, which is one more as code.
  connection.lifetime = static_cast<uint8_t>(request.primary.ack_timeout - (request.primary.ack_timeout > 0 ? 1 : 0));
  connection.path.flow_label = request.primary.flow_label;
  connection.is_waiting = true;
  ++verdict.listener->waiting;
  enter_remote(connection);
  tell(connection, Event::Kind::request, 0, request);
}

void Engine::on(uint64_t, const Arrival& arrival, uint64_t tid, const wire::CmSidrReq& question) {
  // Over all: lookups are rare, and not worth a map of their own.
  for (const auto& [id, known] : connections_) {
    const bool is_passive = known.state == State::lookup_received || known.state == State::lookup_answered;
    if (is_passive && known.remote_id == question.request_id && known.path.remote == arrival.path.remote &&
        known.service_id == question.service_id) {
      if (known.state == State::lookup_answered) {
        resend(known);
      }
      return;
    }
  }
  const Verdict verdict = judge(arrival, question.service_id, question.private_data);
  if (verdict.listener == nullptr) {
    wire::CmSidrRep refusal;
    refusal.request_id = question.request_id;
    refusal.service_id = question.service_id;
    refusal.status = verdict.reason == wire::kRejInvalidServiceId ? wire::kSidrUnsupported : wire::kSidrRejected;
    answer_request(arrival, tid, refusal);
    return;
  }
  if (verdict.listener->waiting >= verdict.listener->backlog) {
    return;
  }
  Connection& connection = create(arrival.path);
  connection.state = State::lookup_received;
  connection.transaction_id = tid;
  connection.remote_id = question.request_id;
  connection.service_id = question.service_id;
  connection.peer_slot = arrival.peer_slot;
  connection.listener = verdict.listener->cookie;
  connection.is_waiting = true;
  ++verdict.listener->waiting;
  tell(connection, Event::Kind::lookup, 0, question);
}

}  // namespace ringbolt::cm
