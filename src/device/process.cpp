#include "device/process.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
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
#include "base/explain.h"
#include "base/lock_guard.h"
#include "base/say.h"
#include "cluster/runtime_dir.h"
#include "device/completion_queue.h"
#include "device/context.h"
#include "device/idle_watch.h"
#include "device/queue_pair.h"
#include "trace/begin.h"

namespace ringbolt::device {
namespace {

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
  const auto wakes = wakes_.create();
  if (!wakes) {
    throw base::Error(wakes.error().value, "make the table of completion queues", "ringbolt",
                      "free memory or raise the limit of open files (ulimit -n)");
  }
  if (base::is_explaining()) {
    peer_notes_ = PeerNotes::open(cluster::RuntimeDir::from_environment().root());
  }
  trace::begin(std::filesystem::path(fabric_->slots_directory).parent_path().string(), fabric_->cluster);
  rendezvous_ = link::Rendezvous::open({fabric_->slots_directory, *table, *wakes, link::kSlotCount}, *this);
  fabric_->control.refresh();  // from here on we are told of changes; earlier ones went to others
  management_ = std::make_unique<Management>(fabric_, rendezvous_->slot(), [this](uint32_t slot) {
    static_cast<void>(rendezvous_->peer_at(slot));  // whoever is connected hears of the other's end
  });
  service_ = std::thread([this] { serve(); });
  if (peer_notes_ != nullptr) {
    idle_watch_ = std::make_unique<IdleWatch>(*this);
  }
}

Process::~Process() {
  if (is_abandoned()) {
    service_.detach();  // the thread did not come along into this child
    static_cast<void>(rendezvous_.release());
    static_cast<void>(idle_watch_.release());  // likewise
    static_cast<void>(peer_notes_.release());  // its file is the parent's
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
      packet_targets_.put(qpn, *qp);
      return qpn;
    }
  }
  return base::fail(ENOMEM);
}

void Process::remove(const QueuePair& qp) {
  packet_targets_.remove(qp.qpn());  // it waits; the number is given to nobody else meanwhile
  const base::LockGuard guard(registry_);
  queue_pairs_.erase(qp.qpn());
}

void Process::add(const std::shared_ptr<CompletionQueue>& cq) {
  const base::LockGuard guard(registry_);
  completion_queues_.emplace(index_of(*cq), cq);
}

void Process::remove(const CompletionQueue& cq) {
  const base::LockGuard guard(registry_);
  completion_queues_.erase(index_of(cq));
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

std::shared_ptr<CompletionQueue> Process::completion_queue_from(uint32_t index) {
  const base::LockGuard guard(registry_);
  const auto next = completion_queues_.lower_bound(index);
  return next == completion_queues_.end() ? nullptr : next->second;
}

std::shared_ptr<CompletionQueue> Process::completion_queue_at(uint32_t index) {
  const base::LockGuard guard(registry_);
  const auto found = completion_queues_.find(index);
  return found == completion_queues_.end() ? nullptr : found->second;
}

uint32_t Process::index_of(const CompletionQueue& queue) { return queue.wake_name().index; }

void Process::mark(const CompletionQueue& queue) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const uint32_t number = index_of(queue) % link::kMarks;
  if (!wakes_.service().has(number)) {
    wakes_.service().mark(number);
  }
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
  const auto remote = remote_of(peer);
  if (const int error = remote->open_regions(); error != 0 && base::is_debug_log_wanted()) {
    tell_unmapped(*peer, "the table of memory regions", error,
                  "READ, WRITE and atomics are left to its service thread");
  }
  remote->open_wakes();  // what it takes is refused with the first offer
}

void Process::on_offer(const std::shared_ptr<link::Peer>& peer, const link::Offer& offer, link::OfferFiles files) {
  const auto qp = find(offer.target_qpn);
  if (qp == nullptr) {
    if (offer.qp_type == IBV_QPT_UD) {
      peer->send(link::Withdraw{offer.target_qpn, offer.source_qpn, link::kNoNonce});  // or its datagrams would wait
    }
    return;
  }
  const auto remote = remote_of(peer);
  Offered offered{base::fail(remote->wakes_error()), {}, {}};
  if (remote->wakes_error() == 0) {
    offered.lane = files.lane.is_open() ? link::SharedSegment::map(files.lane, link::kLaneBytes, true)
                                        : base::Result<link::SharedSegment>(base::fail(EMFILE));
    offered.receive_queue = remote->queue(offer.receive_queue, offer.receive_channel, std::move(files.receive_channel));
    offered.send_queue = remote->queue(offer.send_queue, offer.send_channel, std::move(files.send_channel));
  }
  const int error = offered.lane ? 0 : offered.lane.error().value;
  if (qp->lanes().on_offer(remote, offer, std::move(offered)) && error != 0) {
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
  each_completion_queue([](CompletionQueue& queue) { queue.on_peer_gone(); });
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
    suspect_deaths();  // of before we came: where one was killed that was the last
  }
  return *network_;
}

void Process::on_readable() { network().serve(base::now_ns()); }

void Process::leave() {
  std::call_once(left_, [this] {
    idle_watch_.reset();
    const uint64_t deadline_ns = base::now_ns() + kLeastTimeoutNs;
    each_queue_pair([&](QueuePair& qp) {
      qp.settle_told("the program ended", deadline_ns);
      qp.send_rest(deadline_ns);
    });
    tell_remarks();
    trace::end();
    is_stopping_.store(true);  // after the rendezvous has left there is nothing to wait for
    each_queue_pair([](QueuePair& qp) { qp.lanes().tell_peers(); });
    if (Network* network = open_network_.load(std::memory_order_acquire)) {
      rendezvous_->unwatch(network->descriptor());
      network->leave();
    }
    management_->leave();
    rendezvous_->leave();
    if (peer_notes_ != nullptr) {
      peer_notes_->leave();
    }
  });
}

void Process::abandon_after_fork() {
  is_abandoned_.store(true);
  wakes_.abandon_after_fork();
  management_->abandon_after_fork();
  if (Network* network = open_network_.load(std::memory_order_acquire)) {
    network->abandon_after_fork();
  }
  rendezvous_->abandon_after_fork();
}

}  // namespace ringbolt::device
