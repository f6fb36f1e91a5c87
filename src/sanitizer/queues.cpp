#include "sanitizer/queues.h"

namespace ringbolt::sanitizer {
namespace {

/// The part of a queue pair's number that is its process' on our devices, and above the index on most cards.
/// A guess on foreign cards, where two processes may then count as one: a race is missed or told of, nothing else
/// follows.
constexpr uint32_t kQpnIndexBits = 14;

/// Where its completion goes; null: nowhere, or to a queue that only its completion tells.
CompletionQueue* completion_queue_of(const Request& request) {
  if (request.qp == nullptr) {
    return nullptr;
  }
  if (request.use == Use::receive) {
    return request.qp->receive_cq;
  }
  return request.is_signaled ? request.qp->send_cq : nullptr;
}

uint32_t& receives_of(const Request& request) {
  return request.qp != nullptr ? request.qp->receives : request.srq->posted;
}

}  // namespace

void count_in(const Request& request) {
  if (request.use == Use::receive) {
    ++receives_of(request);
  } else {
    request.qp->sends.post(request.number, request.is_signaled);
  }
  if (CompletionQueue* const cq = completion_queue_of(request); cq != nullptr) {
    cq->expect();
  }
}

void count_out(const Request& request) {
  if (request.use == Use::receive) {
    --receives_of(request);
  } else {
    request.qp->sends.drop(request.number);
  }
  if (CompletionQueue* const cq = completion_queue_of(request); cq != nullptr) {
    cq->settle();
  }
}

uint64_t peer_of(const ibv_qp_attr& attributes, bool is_on_network) {
  constexpr uint64_t kPrime = 0x100'0000'01b3;
  uint64_t hash = 0xcbf2'9ce4'8422'2325;  // FNV-1a
  for (const uint8_t byte : attributes.ah_attr.grh.dgid.raw) {
    hash = is_on_network ? (hash ^ byte) * kPrime : hash;
  }
  // Odd, so never 0, which stands for a free place in the table of races.
  return (hash ^ attributes.dest_qp_num >> kQpnIndexBits) * kPrime | 1U;
}

CompletionQueue& Queues::add(const ibv_cq& c, const base::CallSite& made) {
  auto queue = std::make_unique<CompletionQueue>(static_cast<uint32_t>(c.cqe), c.channel, made);
  return *(completion_queues_[&c] = std::move(queue));
}

SharedQueue& Queues::add(const ibv_srq& c) { return *(shared_[&c] = std::make_unique<SharedQueue>()); }

QueuePair& Queues::add(ibv_qp& c, const ibv_qp_init_attr& wanted, const ibv_qp_cap& granted) {
  auto pair = std::make_unique<QueuePair>();
  pair->c = &c;
  pair->qpn = c.qp_num;
  pair->type = c.qp_type;
  pair->caps = granted;
  pair->signals_all = wanted.sq_sig_all != 0;
  pair->send_cq = find(wanted.send_cq);
  pair->receive_cq = find(wanted.recv_cq);
  pair->srq = find(wanted.srq);
  return *(queue_pairs_[&c] = std::move(pair));
}

void Queues::clear() {
  queue_pairs_.clear();
  completion_queues_.clear();
  shared_.clear();
}

bool Queues::may_complete_to(const CompletionQueue& queue) const {
  return std::ranges::any_of(queue_pairs_, [&](const auto& entry) {
    const QueuePair& qp = *entry.second;
    const bool awaits_receive = qp.receives != 0 || (qp.srq != nullptr && qp.srq->posted != 0);
    return (qp.receive_cq == &queue && qp.can_receive() && awaits_receive) ||
           (qp.send_cq == &queue && qp.told == IBV_QPS_RTS && qp.sends.signaled() != 0);
  });
}

bool Queues::may_execute(const Request& request) const {
  if (request.qp != nullptr) {
    return request.qp->can_receive();
  }
  return std::ranges::any_of(
      queue_pairs_, [&](const auto& entry) { return entry.second->srq == request.srq && entry.second->can_receive(); });
}

}  // namespace ringbolt::sanitizer
