// What the program makes and destroys.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/lock_guard.h"
#include "sanitizer/shadow.h"
#include "sanitizer/words.h"

namespace ringbolt::sanitizer {
namespace {

constexpr uint32_t kPeersMayWrite = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
/// The part of a queue pair's number that is its process' on our devices, and above the index on most cards.
constexpr uint32_t kQpnIndexBits = 14;

/// Not 0. On one host the numbers of queue pairs name the process, by whatever port it is reached.
uint64_t peer_of(const ibv_qp_attr& attributes, bool is_on_network) {
  constexpr uint64_t kPrime = 0x100'0000'01b3;
  uint64_t hash = 0xcbf2'9ce4'8422'2325;  // FNV-1a
  for (const uint8_t byte : attributes.ah_attr.grh.dgid.raw) {
    hash = is_on_network ? (hash ^ byte) * kPrime : hash;
  }
  return (hash ^ attributes.dest_qp_num >> kQpnIndexBits) * kPrime | 1U;
}

}  // namespace

Shadow::Shadow(const Wish& wish, const Calls& calls)
    : wish_(wish), calls_(calls), first_number_(static_cast<uint32_t>(base::now_ns() * 0x9e37'79b9)) {}

void Shadow::in_child() {
  requests_.clear();
  old_ids_.clear();
  poisoned_.clear();
  sent_from_ = written_to_ = exposed_ = {};
  remote_.clear();
  regions_.clear();
  for (auto& [pd, kept] : kept_) {
    static_cast<void>(kept.release());  // registered at a device that is the parent's
  }
  kept_.clear();
  queue_pairs_.clear();
  queues_.clear();
  shared_.clear();
  looked_up_.clear();
  race_table_.reset();  // whose lock would be the parent's, too
  owned_.clear();
  mutex_.unlock();
  reports_.forget();
}

QueuePair* Shadow::find(const ibv_qp* qp) {
  const base::LockGuard guard(mutex_);
  const auto known = queue_pairs_.find(qp);
  return known == queue_pairs_.end() ? nullptr : known->second.get();
}

SharedQueue* Shadow::find(const ibv_srq* srq) {
  const base::LockGuard guard(mutex_);
  const auto known = shared_.find(srq);
  return known == shared_.end() ? nullptr : known->second.get();
}

void Shadow::made(ObjectKind kind, const void* object, const base::CallSite& site) {
  const base::LockGuard guard(mutex_);
  owned_[object] = {kind, site, {}};
}

void Shadow::gone(const void* object) {
  const base::LockGuard guard(mutex_);
  owned_.erase(object);
}

void Shadow::busy(const void* object, const base::CallSite& site) {
  const base::LockGuard guard(mutex_);
  if (const auto known = owned_.find(object); known != owned_.end()) {
    known->second.busy = site;
  }
}

void Shadow::report_leaks() {
  if (!wish_.has(Kind::objects)) {
    return;
  }
  struct Leak {
    Owned first;
    size_t count;
  };
  std::vector<Leak> leaks;
  {
    const base::LockGuard guard(mutex_);
    for (const auto& [object, owned] : owned_) {
      const auto same = std::ranges::find_if(leaks, [&one = owned](const Leak& leak) {
        return leak.first.kind == one.kind && leak.first.made.returns == one.made.returns &&
               leak.first.busy.returns == one.busy.returns;
      });
      if (same == leaks.end()) {
        leaks.push_back({owned, 1});
      } else {
        ++same->count;
      }
    }
  }
  std::ranges::sort(leaks, {}, [](const Leak& one) { return one.first.kind; });
  for (const Leak& leak : leaks) {
    const ObjectWords words = words_of(leak.first.kind);
    const std::string count = fmt::format("{} {}", leak.count, leak.count == 1 ? words.one : words.many);
    if (leak.first.busy) {
      reports_.report({Kind::objects,
                       "destroy-failed",
                       fmt::format("{} answered EBUSY, and nobody tried again", words.destroyer),
                       fmt::format("{} left when the process ended", count),
                       {{"destroyed in vain", leak.first.busy}, {"made", leak.first.made}},
                       "destroy first what uses it, and look at what the destroy answers"});
    } else {
      reports_.report({Kind::objects,
                       "object-left",
                       fmt::format("{} was never destroyed", words.one),
                       fmt::format("{} left when the process ended", count),
                       {{"made", leak.first.made}},
                       fmt::format("call {} for each", words.destroyer)});
    }
  }
}

void Shadow::domain_goes(ibv_pd* pd) {
  const base::LockGuard guard(mutex_);
  const auto known = kept_.find(pd);
  if (known != kept_.end() &&
      std::ranges::none_of(requests_, [&](const auto& one) { return one.second->kept == known->second.get(); })) {
    kept_.erase(known);
  }
}

void Shadow::region_made(const ibv_mr& mr, uint64_t iova, uint32_t access, const base::CallSite& site) {
  const Region region{reinterpret_cast<uint64_t>(mr.addr),
                      mr.length,
                      (access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : iova,
                      access,
                      mr.pd,
                      site};
  if (wish_.has(Kind::portable)) {
    if (const std::string why = portability_.of_region(region.address, region.iova, access); !why.empty()) {
      reports_.report(not_portable("the region works here and not everywhere", why, "registered", site));
    }
  }
  made(ObjectKind::mr, &mr, site);
  const base::LockGuard guard(mutex_);
  regions_[mr.lkey] = region;
  if ((access & kPeersMayWrite) == 0) {
    return;
  }
  exposed_.add(region.address, region.length, mr.lkey);
  for (auto& [number, request] : requests_) {
    const bool overlaps =
        request->is_poisoned && std::ranges::any_of(request->pieces, [&](const Piece& one) {
          return one.address < region.address + region.length && region.address < one.address + one.length;
        });
    if (overlaps) {
      unpoison(*request);
    }
  }
}

void Shadow::region_goes(const ibv_mr& mr, std::string_view call, const base::CallSite& site) {
  std::vector<Finding> found;
  {
    const base::LockGuard guard(mutex_);
    for (auto& [number, owner] : requests_) {
      Request* const request = owner.get();
      const bool uses = std::ranges::any_of(request->pieces, [&](const Piece& one) { return one.lkey == mr.lkey; });
      if (!uses) {
        continue;
      }
      // A queue pair that has ended does nothing with its requests but flush them.
      const bool is_alive = request->qp != nullptr
                                ? request->qp->told == IBV_QPS_RTS || request->qp->told == IBV_QPS_RTR
                                : std::ranges::any_of(queue_pairs_, [&](const auto& entry) {
                                    return entry.second->srq == request->srq && entry.second->told >= IBV_QPS_RTR &&
                                           entry.second->told <= IBV_QPS_RTS;
                                  });
      const bool is_known = request->is_given_up || (request->qp != nullptr && request->qp->failed);
      unpoison(*request);
      request->is_forsaken = true;
      if (is_alive && !is_known && wish_.has(Kind::buffers)) {
        found.push_back({Kind::buffers,
                         "region-gone-in-use",
                         "a region was deregistered under a request that uses it",
                         fmt::format("{} of lkey {:#x}, {} bytes at {:#x}; {} is not complete", call, mr.lkey,
                                     mr.length, reinterpret_cast<uint64_t>(mr.addr), text_of(*request)),
                         {{"deregistered", site}, {"posted", request->posted}},
                         "poll the completion first; destroy the queue pair first if receives are still posted"});
      }
    }
    if (const auto known = regions_.find(mr.lkey); known != regions_.end()) {
      exposed_.remove(known->second.address, mr.lkey);
      if (call == "ibv_dereg_mr") {
        regions_.erase(known);
      }
    }
  }
  report_all(found);
}

void Shadow::region_changed(const ibv_mr& mr, std::optional<uint32_t> access) {
  const base::LockGuard guard(mutex_);
  const auto address = reinterpret_cast<uint64_t>(mr.addr);
  Region& region = regions_[mr.lkey];
  const bool has_moved = region.address != address;
  region = {address, mr.length, has_moved ? address : region.iova, access.value_or(region.access), mr.pd, region.made};
  if ((region.access & kPeersMayWrite) != 0) {
    exposed_.add(address, mr.length, mr.lkey);
  }
}

void Shadow::queue_made(const ibv_cq& cq, const base::CallSite& site) {
  if (wish_.has(Kind::portable)) {
    const std::string why = portability_.of_queue(static_cast<uint32_t>(cq.cqe), cq.channel != nullptr);
    if (!why.empty()) {
      reports_.report(not_portable("the completion queue works here and not everywhere", why, "made", site));
    }
  }
  made(ObjectKind::cq, &cq, site);
  auto queue = std::make_unique<CompletionQueue>();
  queue->entries = static_cast<uint32_t>(cq.cqe);
  queue->channel = cq.channel;
  queue->made = site;
  const base::LockGuard guard(mutex_);
  queues_[&cq] = std::move(queue);
}

void Shadow::queue_resized(const ibv_cq& cq) {
  const base::LockGuard guard(mutex_);
  if (const auto known = queues_.find(&cq); known != queues_.end()) {
    known->second->entries = static_cast<uint32_t>(cq.cqe);
  }
}

void Shadow::queue_gone(const ibv_cq& cq) {
  gone(&cq);
  const base::LockGuard guard(mutex_);
  queues_.erase(&cq);
}

void Shadow::shared_queue_made(ibv_srq& srq, const base::CallSite& site) {
  if (wish_.has(Kind::portable)) {
    if (const std::string why = portability_.of_srq(); !why.empty()) {
      reports_.report(not_portable("the shared receive queue works here and not everywhere", why, "made", site));
    }
  }
  made(ObjectKind::srq, &srq, site);
  auto queue = std::make_unique<SharedQueue>();
  queue->c = &srq;
  const base::LockGuard guard(mutex_);
  shared_[&srq] = std::move(queue);
}

void Shadow::shared_queue_gone(const ibv_srq& srq) {
  gone(&srq);
  const base::LockGuard guard(mutex_);
  const auto known = shared_.find(&srq);
  if (known == shared_.end()) {
    return;
  }
  std::vector<uint32_t> numbers;
  for (const auto& [number, request] : requests_) {
    if (request->srq == known->second.get()) {
      numbers.push_back(number);
    }
  }
  for (const uint32_t number : numbers) {
    drop(number);
  }
  shared_.erase(known);
}

void Shadow::queue_pair_made(ibv_qp& qp, const ibv_qp_init_attr& wanted, const ibv_qp_cap& granted, Nature nature,
                             const base::CallSite& site) {
  if (wish_.has(Kind::portable)) {
    if (const std::string why = portability_.of_queue_pair(wanted); !why.empty()) {
      reports_.report(not_portable("the queue pair works here and not everywhere", why, "made", site));
    }
  }
  made(ObjectKind::qp, &qp, site);
  auto pair = std::make_unique<QueuePair>();
  pair->c = &qp;
  pair->qpn = qp.qp_num;
  pair->type = qp.qp_type;
  pair->caps = granted;
  pair->signals_all = wanted.sq_sig_all != 0;
  pair->keeps = nature.keeps;
  pair->is_on_network = nature.is_on_network;
  const base::LockGuard guard(mutex_);
  const auto queue_of = [&](const ibv_cq* cq) RINGBOLT_REQUIRES(mutex_) {
    const auto known = queues_.find(cq);
    return known == queues_.end() ? nullptr : known->second.get();
  };
  pair->send_cq = queue_of(wanted.send_cq);
  pair->receive_cq = queue_of(wanted.recv_cq);
  const auto srq = shared_.find(wanted.srq);
  pair->srq = srq == shared_.end() ? nullptr : srq->second.get();
  queue_pairs_[&qp] = std::move(pair);
}

void Shadow::queue_pair_changed(const ibv_qp& qp, const ibv_qp_attr& attributes, int mask, const base::CallSite& site) {
  if (wish_.has(Kind::portable)) {
    if (const std::string why = portability_.of_change(attributes, mask); !why.empty()) {
      reports_.report(not_portable("the queue pair's attributes work here and not everywhere", why, "set", site));
    }
  }
  if ((mask & IBV_QP_AV) != 0) {
    check_gid_index(qp.context, attributes.ah_attr, site);
  }
  const base::LockGuard guard(mutex_);
  const auto known = queue_pairs_.find(&qp);
  if (known == queue_pairs_.end() || (mask & IBV_QP_STATE) == 0) {
    return;
  }
  QueuePair& pair = *known->second;
  pair.told = attributes.qp_state;
  if (pair.told == IBV_QPS_RESET) {
    drop_all(pair);
    pair.failed = {};
  } else if (pair.told == IBV_QPS_RTR && (mask & IBV_QP_DEST_QPN) != 0) {
    pair.peer = peer_of(attributes, pair.is_on_network);
  }
}

void Shadow::looked_up(const ibv_context* context) {
  const base::LockGuard guard(mutex_);
  looked_up_.insert(context);
}

void Shadow::address_handle_made(const ibv_ah& ah, const ibv_ah_attr& attributes, const base::CallSite& site) {
  made(ObjectKind::ah, &ah, site);
  check_gid_index(ah.context, attributes, site);
}

void Shadow::check_gid_index(const ibv_context* context, const ibv_ah_attr& path, const base::CallSite& site) {
  if (!wish_.has(Kind::portable) || path.is_global == 0) {
    return;
  }
  {
    const base::LockGuard guard(mutex_);
    if (looked_up_.contains(context)) {
      return;
    }
  }
  reports_.report(
      {Kind::portable,
       "gid-index-guessed",
       "a GID index is used that was never looked up",
       fmt::format("grh.sgid_index is {}: IPv4 by RoCE v2 is at 1 on most machines, at 2 on a Mac that renewed its "
                   "address, at 3 on mlx5",
                   path.grh.sgid_index),
       {{"set", site}},
       "search the table with ibv_query_gid_ex or ibv_query_gid_table for the address and type that you mean"});
}

void Shadow::queue_pair_gone(const ibv_qp& qp) {
  gone(&qp);
  const base::LockGuard guard(mutex_);
  if (const auto known = queue_pairs_.find(&qp); known != queue_pairs_.end()) {
    drop_all(*known->second);
    queue_pairs_.erase(known);
  }
}

}  // namespace ringbolt::sanitizer
