#include "device/process.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/asymmetric_fence.h"
#include "base/clock.h"
#include "base/cpu_pause.h"
#include "base/debug_log.h"
#include "base/error.h"
#include "base/lock_guard.h"
#include "base/say.h"
#include "device/completion_queue.h"
#include "device/context.h"
#include "device/queue_pair.h"

namespace ringbolt::device {
namespace {

// How often the service thread looks at work that no bell announces: often at first, then ever less often.
constexpr int kFirstTickMs = 1;
constexpr int kLastTickMs = 64;
constexpr int kStateTickMs = 2;

void introduce(link::Peer& peer, const link::OwnArenas::Made& arena) {
  peer.send(link::Arena{arena.arena_id, arena.segment->length_bytes()}, arena.segment->descriptor());
}

/// On standard error: what a peer gave us and what we can't do with it, with the remedy.
void tell_unmapped(const link::Peer& peer, std::string_view what, int error, std::string_view consequence) {
  static base::LinePace pace;
  if (!pace.may_say(base::now_ns())) {
    return;
  }
  const std::string_view remedy = error == EMFILE   ? "raise the limit of open files (ulimit -n)"
                                  : error == ENOMEM ? "raise the limit of address space (ulimit -v) or free memory"
                                                    : "end the other process: it sends what is not understood";
  base::say(fmt::format("ringbolt: {} of process {} can't be mapped ({}); {}; {}\n", what, peer.pid(),
                        std::generic_category().message(error), consequence, remedy));
}

uint32_t random_index() {
  std::random_device device;
  return device() % kMaxQueuePairs;
}

}  // namespace

Process::Process(std::shared_ptr<Fabric> fabric) : fabric_(std::move(fabric)), next_qp_index_(random_index()) {
  const auto table = regions_.create();
  if (!table) {
    throw base::Error(table.error().value, "make the table of memory regions", "ringbolt",
                      "free memory or raise the limit of open files (ulimit -n)");
  }
  rendezvous_ = link::Rendezvous::open({fabric_->slots_directory, *table, link::kSlotCount}, *this);
  fabric_->control.refresh();  // from here on we are told of changes; earlier ones went to others
  management_ = std::make_unique<Management>(fabric_, rendezvous_->slot(), [this](uint32_t slot) {
    static_cast<void>(rendezvous_->peer_at(slot));  // whoever is connected hears of the other's end
  });
  service_ = std::thread([this] { serve(); });
}

Process::~Process() {
  if (is_abandoned()) {
    service_.detach();  // the thread did not come along into this child
    static_cast<void>(rendezvous_.release());
    return;
  }
  is_stopping_.store(true);
  rendezvous_->wake();
  service_.join();
  leave();
}

base::Result<std::byte*> Process::allocate_buffer(size_t length_bytes) {
  const auto made = arenas_.make(length_bytes);
  if (!made) {
    return base::fail(made.error().value);
  }
  const base::LockGuard guard(remotes_mutex_);
  for (const auto& [peer, remote] : remotes_) {
    introduce(remote->peer(), *made);
  }
  return made->segment->data();
}

void Process::free_buffer(void* address) {
  if (is_abandoned()) {
    return;  // in a forked child: the parent's
  }
  if (const auto arena_id = arenas_.free(address)) {
    tell_freed(*arena_id);
  }
}

void Process::drop_arena(uint32_t arena_id) {
  if (arena_id != 0 && arenas_.drop(arena_id)) {
    tell_freed(arena_id);
  }
}

/// Its place is given out anew only once every peer was sent the news: they arrive in that order.
void Process::tell_freed(uint32_t arena_id) {
  {
    const base::LockGuard guard(remotes_mutex_);
    for (const auto& [peer, remote] : remotes_) {
      remote->peer().send(link::Release{arena_id});
    }
  }
  arenas_.retire(arena_id);
}

base::Result<uint32_t> Process::add(const std::shared_ptr<QueuePair>& qp) {
  const base::LockGuard guard(registry_);
  for (uint32_t tries = 0; tries < kMaxQueuePairs; ++tries) {
    const uint32_t qpn = (rendezvous_->slot() << kQpnIndexBits) | (next_qp_index_++ % kMaxQueuePairs);
    if (qpn > 1 && !queue_pairs_.contains(qpn)) {  // 0 and 1 are the management queue pairs
      qp->assign_qpn(qpn);
      queue_pairs_.emplace(qpn, qp);
      return qpn;
    }
  }
  return base::fail(ENOMEM);
}

void Process::remove(const QueuePair& qp) {
  const base::LockGuard guard(registry_);
  queue_pairs_.erase(qp.qpn());
}

void Process::add(const std::shared_ptr<CompletionQueue>& cq) {
  const base::LockGuard guard(registry_);
  completion_queues_.emplace(cq.get(), cq);
}

void Process::remove(const CompletionQueue& cq) {
  const base::LockGuard guard(registry_);
  completion_queues_.erase(&cq);
}

void Process::add(Context* context) {
  const base::LockGuard guard(registry_);
  contexts_.push_back(context);
}

void Process::remove(Context* context) {
  const base::LockGuard guard(registry_);
  std::erase(contexts_, context);
}

std::shared_ptr<cluster::CounterPage> Process::counters(const std::string& path, cluster::CounterPage::Port port) {
  const base::LockGuard guard(counters_mutex_);
  auto& page = counters_[path];
  if (page == nullptr && !path.empty()) {
    try {
      page = cluster::CounterPage::open(path, port);
    } catch (const base::Error& error) {
      if (base::is_debug_log_wanted()) {
        base::say(fmt::format("ringbolt: what this program does is not counted: {}\n", error.what()));
      }
    }
  }
  if (page == nullptr) {
    page = cluster::CounterPage::in_own_memory();
  }
  return page;
}

std::shared_ptr<QueuePair> Process::find(uint32_t qpn) {
  const base::LockGuard guard(registry_);
  const auto found = queue_pairs_.find(qpn);
  return found == queue_pairs_.end() ? nullptr : found->second;
}

std::shared_ptr<QueuePair> Process::queue_pair_after(uint32_t qpn) {
  const base::LockGuard guard(registry_);
  const auto next = queue_pairs_.upper_bound(qpn);
  return next == queue_pairs_.end() ? nullptr : next->second;
}

std::shared_ptr<CompletionQueue> Process::completion_queue_after(const CompletionQueue* queue) {
  const base::LockGuard guard(registry_);
  const auto next = completion_queues_.upper_bound(queue);
  return next == completion_queues_.end() ? nullptr : next->second;
}

uint32_t Process::number_of(const QueuePair& qp) { return qp.qpn(); }

std::shared_ptr<link::RemoteProcess> Process::remote_of(const std::shared_ptr<link::Peer>& peer) {
  const base::LockGuard guard(remotes_mutex_);
  if (const auto known = remotes_.find(peer.get()); known != remotes_.end()) {
    return known->second;
  }
  const std::vector<link::OwnArenas::Made> arenas = arenas_.all();
  const auto remote = remotes_.emplace(peer.get(), std::make_shared<link::RemoteProcess>(peer)).first->second;
  for (const link::OwnArenas::Made& arena : arenas) {
    introduce(*peer, arena);
  }
  return remote;
}

std::shared_ptr<link::RemoteProcess> Process::owner_of(uint32_t qpn) {
  const auto peer = rendezvous_->peer_at(qpn >> kQpnIndexBits);
  return peer == nullptr ? nullptr : remote_of(peer);
}

void Process::wait_for_accesses(uint32_t key) {
  base::heavy_fence();
  const uint64_t deadline = base::now_ns() + kAccessDrainNs;
  each_queue_pair([&](QueuePair& qp) {
    while (qp.lanes().is_accessed(key) && base::now_ns() < deadline) {
      base::cpu_pause();
    }
  });
}

/// True: some are still used.
bool Process::drain_windows() {
  if (!has_drains_.exchange(false, std::memory_order_seq_cst)) {
    return false;
  }
  base::heavy_fence();
  const uint64_t now = base::now_ns();
  bool is_used = false;
  each_queue_pair([&](QueuePair& qp) {
    const uint32_t key = qp.windows().draining_key();
    if (key == 0) {
      return;
    }
    bool uses_key = false;
    each_queue_pair([&](QueuePair& other) { uses_key = uses_key || other.lanes().is_accessed(key); });
    if (uses_key && now < qp.windows().drain_until_ns()) {
      is_used = true;
    } else {
      qp.end_drain(key);
    }
  });
  if (is_used) {
    has_drains_.store(true, std::memory_order_seq_cst);
  }
  return is_used;
}

void Process::tell_remarks() {
  if (!has_remarks_.exchange(false, std::memory_order_seq_cst)) {
    return;
  }
  std::vector<std::shared_ptr<const Port>> ports;
  {
    const base::LockGuard guard(registry_);
    for (const Context* context : contexts_) {
      ports.push_back(context->shared_port());
    }
  }
  for (const auto& port : ports) {
    port->tell_seen();
  }
}

void Process::wait_for_own_copies(bool is_wrapped) {
  if (is_wrapped || open_network_.load(std::memory_order_acquire) != nullptr) {
    each_queue_pair([](QueuePair& qp) { qp.wait_for_own_copies(); });
  }
}

void Process::on_ready(const std::shared_ptr<link::Peer>& peer) {
  // Nobody need be told: without it the peer carries out what else we would do ourselves.
  if (const int error = remote_of(peer)->open_regions(); error != 0 && base::is_debug_log_wanted()) {
    tell_unmapped(*peer, "the table of memory regions", error,
                  "READ, WRITE and atomics are left to its service thread");
  }
}

void Process::on_offer(const std::shared_ptr<link::Peer>& peer, const link::Offer& offer, base::UniqueFd lane) {
  const auto qp = find(offer.target_qpn);
  if (qp == nullptr) {
    if (offer.qp_type == IBV_QPT_UD) {
      peer->send(link::Withdraw{offer.target_qpn, offer.source_qpn, link::kNoNonce});  // or its datagrams would wait
    }
    return;
  }
  auto segment = lane.is_open() ? link::SharedSegment::map(lane, link::kLaneBytes, true)
                                : base::Result<link::SharedSegment>(base::fail(EMFILE));
  const int error = segment ? 0 : segment.error().value;
  if (qp->lanes().on_offer(remote_of(peer), offer, std::move(segment)) && error != 0) {
    peer->send(link::Refuse{offer.target_qpn, offer.source_qpn, offer.nonce, static_cast<uint32_t>(error)});
    tell_unmapped(*peer, "the memory between two queue pairs", error,
                  fmt::format("queue pair {:#x} here and {:#x} there fail", offer.target_qpn, offer.source_qpn));
  }
}

void Process::on_refuse(const std::shared_ptr<link::Peer>& peer, const link::Refuse& refuse) {
  const auto qp = find(refuse.target_qpn);
  if (qp != nullptr && qp->lanes().on_refuse(refuse)) {
    base::say(
        fmt::format("ringbolt: process {} can't map the memory between queue pairs {:#x} here and {:#x} there "
                    "({}): they fail; its own error output says what to do\n",
                    peer->pid(), refuse.target_qpn, refuse.source_qpn,
                    std::generic_category().message(static_cast<int>(refuse.error))));
  }
}

void Process::on_withdraw(const std::shared_ptr<link::Peer>&, const link::Withdraw& withdraw) {
  if (const auto qp = find(withdraw.target_qpn)) {
    qp->lanes().on_withdraw(withdraw);
  }
}

void Process::on_arena(const std::shared_ptr<link::Peer>& peer, const link::Arena& arena, base::UniqueFd memory) {
  const int error = remote_of(peer)->arenas().add(arena.arena_id, arena.length_bytes, memory);
  if (error != 0 && error != EALREADY) {
    tell_unmapped(*peer, fmt::format("{} bytes of memory", arena.length_bytes), error,
                  "messages of 2 KiB and more out of it end in an error, here and there");
  }
}

void Process::on_release(const std::shared_ptr<link::Peer>& peer, const link::Release& release) {
  const auto remote = remote_of(peer);
  if (remote->arenas().hide(release.arena_id)) {
    // By now they find nothing there any more; a copy that began before ends first.
    each_queue_pair([](QueuePair& qp) { qp.wait_for_copies(); });
    remote->arenas().forget(release.arena_id);
  }
}

void Process::on_gone(const std::shared_ptr<link::Peer>& peer) {
  each_completion_queue([](CompletionQueue& queue) { queue.take_arrived(); });
  each_queue_pair([&](QueuePair& qp) { qp.lanes().on_peer_gone(*peer, peer->left_orderly()); });
  management_->on_peer_gone(peer->slot());
  const base::LockGuard guard(remotes_mutex_);
  remotes_.erase(peer.get());
}

void Process::on_poke() {
  fabric_->control.refresh();
  fabric_->verb_faults.look();
  look_at_ports();
}

void Process::look_at_ports(bool addresses_changed) {
  {
    const base::LockGuard guard(registry_);
    for (Context* context : contexts_) {
      context->look_at_port(addresses_changed);
    }
  }
  each_queue_pair([](QueuePair& qp) { qp.look_at_faults(); });
}

void Process::look_at_addresses() {
  look_at_ports(true);
  management_->look_at_addresses();
}

Network& Process::open_network() {
  const base::LockGuard guard(network_opening_);
  if (network_ == nullptr) {
    network_ = std::make_unique<Network>(*this, fabric_->slots_directory, rendezvous_->slot());
    open_network_.store(network_.get(), std::memory_order_release);
    // The service thread may be told of a packet from here on.
    if (!rendezvous_->watch(network_->descriptor())) {
      const int error = errno;
      open_network_.store(nullptr, std::memory_order_relaxed);
      network_.reset();
      throw base::Error(error, "epoll_ctl", "network", "look at /proc/sys/fs/epoll/max_user_watches");
    }
    management_->set_network_sender([this](const Port& port, const Mad& mad) { return network().send(port, mad); });
  }
  return *network_;
}

void Process::on_readable() { network().serve(base::now_ns()); }

void Process::serve() {
  prctl(PR_SET_NAME, "ringbolt");
  int tick_ms = fabric_->verb_faults.has(fault::Subject::state) ? kStateTickMs : -1;
  while (!is_stopping_.load()) {
    try {
      tick_ms = serve_once(tick_ms);
    } catch (const std::bad_alloc&) {
      // No reason to end the program. What is left is looked at soon; a message of a peer that is lost by this ends in
      // the time limits of its queue pair.
      if (!std::exchange(has_run_short_, true)) {
        base::say("ringbolt: out of memory: what peers asked for may end in errors\n");
      }
      tick_ms = kFirstTickMs;
    }
  }
}

/// Waits for something to do, for `tick_ms` at most, and does it. How long to wait then.
int Process::serve_once(int tick_ms) {
  has_bell_ = false;
  rendezvous_->dispatch(tick_ms);
  // Cleared before looking: what is asked for from here on wakes us again.
  is_ticking_.exchange(false, std::memory_order_seq_cst);  // an exchange sees what was stored before it was set
  is_woken_.exchange(false, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with request_service()
  const bool is_draining = drain_windows();
  tell_remarks();
  tick_ms = next_tick_ms(has_bell_ ? -1 : tick_ms);
  tick_ms = is_draining ? kFirstTickMs : tick_ms;
  if (tick_ms >= 0) {
    is_ticking_.store(true, std::memory_order_seq_cst);
  }
  return tick_ms;
}

int Process::next_tick_ms(int last_tick_ms) {
  const bool has_states = fabric_->verb_faults.has(fault::Subject::state);
  if (has_states) {
    look_at_ports();
    each_queue_pair([](QueuePair& qp) { qp.look_at_cable(); });
  }
  const uint64_t now = base::now_ns();
  auto remains = CompletionQueue::Remains::nothing;
  uint64_t deadline = UINT64_MAX;
  each_completion_queue([&](CompletionQueue& queue) {
    remains = std::max(remains, queue.serve(now));
    deadline = std::min(deadline, queue.wire_deadline_ns());
  });
  if (has_states) {
    return kStateTickMs;  // they change by the clock
  }
  if (deadline != UINT64_MAX) {
    // Rounded up: a timer that is looked at too early is looked at twice.
    const uint64_t wait_ms = deadline <= now ? 0 : (deadline - now) / 1'000'000 + 1;
    return static_cast<int>(std::clamp<uint64_t>(wait_ms, kFirstTickMs, kLastTickMs));
  }
  switch (remains) {
    case CompletionQueue::Remains::nothing:
      return -1;
    case CompletionQueue::Remains::work:
      return kFirstTickMs;
    default:
      return last_tick_ms < 0 ? kFirstTickMs : std::min(last_tick_ms * 2, kLastTickMs);
  }
}

void Process::leave() {
  std::call_once(left_, [this] {
    const uint64_t deadline_ns = base::now_ns() + kLeastTimeoutNs;
    each_queue_pair([&](QueuePair& qp) {
      qp.settle_told("the program ended", deadline_ns);
      qp.send_rest(deadline_ns);
    });
    tell_remarks();
    is_stopping_.store(true);  // after the rendezvous has left there is nothing to wait for
    each_queue_pair([](QueuePair& qp) { qp.lanes().tell_peers(); });
    if (Network* network = open_network_.load(std::memory_order_acquire)) {
      rendezvous_->unwatch(network->descriptor());
      network->leave();
    }
    management_->leave();
    rendezvous_->leave();
  });
}

void Process::abandon_after_fork() {
  is_abandoned_.store(true);
  management_->abandon_after_fork();
  if (Network* network = open_network_.load(std::memory_order_acquire)) {
    network->abandon_after_fork();
  }
  rendezvous_->abandon_after_fork();
}

}  // namespace ringbolt::device
