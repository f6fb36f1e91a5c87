#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "cluster/counter_page.h"
#include "device/limits.h"
#include "device/management.h"
#include "device/network.h"
#include "device/next_look.h"
#include "device/peer_notes.h"
#include "device/port.h"
#include "device/queue_pair_table.h"
#include "device/region_ages.h"
#include "device/window_book.h"
#include "link/arena.h"
#include "link/region_table.h"
#include "link/remote_process.h"
#include "link/rendezvous.h"
#include "link/wake_table.h"

namespace ringbolt::device {

class CompletionQueue;
class Context;
class IdleWatch;
class QueuePair;

/// What a process has once, however many contexts it opens: its slot, its region table, what it knows of other
/// processes, and the service thread, which does what nobody polls for and sleeps when there is nothing to do.
/// Lock order: registry before completion queues before queue pairs. Thread-safe.
class Process final : private link::RendezvousSink {
 public:
  /// Claims a slot and starts the service thread. Throws base::Error.
  explicit Process(std::shared_ptr<Fabric> fabric);
  ~Process() override;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  const Fabric& fabric() const { return *fabric_; }
  link::RegionTable& regions() { return regions_; }
  link::OwnArenas& arenas() { return arenas_; }
  link::WakeTable& wakes() { return wakes_; }
  WindowBook& windows() { return windows_; }
  /// Null unless RINGBOLT_EXPLAIN asks for it.
  PeerNotes* peer_notes() const { return peer_notes_.get(); }
  /// Queue pair 1: management datagrams for the connection manager.
  Management& management() { return *management_; }
  /// Opens the network at the first call. Throws base::Error.
  Network& open_network();
  /// Only after open_network().
  Network& network() { return *open_network_.load(std::memory_order_acquire); }
  uint32_t next_pd_key() { return next_pd_key_.fetch_add(1, std::memory_order_relaxed); }

  /// Shareable memory, known to every peer. ENOMEM, EMFILE.
  base::Result<std::byte*> allocate_buffer(size_t length_bytes);
  /// The program needs it no longer. It is gone, here and at the peers, once the last region over it is, too.
  void free_buffer(void* address);
  /// A region over the arena is gone; 0: it was over none.
  void drop_arena(uint32_t arena_id);

  /// Gives the queue pair a number that was not used for long. ENOMEM when all are taken.
  base::Result<uint32_t> add(const std::shared_ptr<QueuePair>& qp);
  void remove(const QueuePair& qp);
  void add(const std::shared_ptr<CompletionQueue>& cq);
  void remove(const CompletionQueue& cq);
  void add(Context* context);
  void remove(Context* context);

  /// The process that owns the queue pair number; nothing when there is none. Never blocks for long.
  std::shared_ptr<link::RemoteProcess> owner_of(uint32_t qpn);

  /// Somebody must get on with queued work although no program thread may poll: the service thread looks at that
  /// completion queue, at once unless it is at work already; or at all of them.
  void request_service(const CompletionQueue& queue) {
    mark(queue);
    hurry(Pace::work);
  }
  void request_service() {
    serves_all_.store(true, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // as in mark()
    hurry(Pace::work);
  }
  /// The same for sends that nothing ails so far: their timers are looked at from time to time. As long as there are
  /// such again and again, this costs nothing.
  void watch_timers(const CompletionQueue& queue) {
    mark(queue);
    hurry(Pace::timers);
  }

  /// A timer of a queue pair on the network runs out then, and deadline_ns() of it says so: the service thread looks in
  /// time, whether anybody polls or not.
  void watch_until(uint64_t deadline_ns) {
    if (next_look_.is_too_late_for(deadline_ns)) {
      rendezvous_->wake();
    }
  }

  /// Messages of peers, or their ends, wait for the service thread. A system call.
  bool is_behind() const { return rendezvous_->has_pending(); }

  /// Packets wait for queue pairs that nobody polls: wakes the service thread, whatever it is at.
  void wake_service() {
    if (!is_woken_.exchange(true, std::memory_order_seq_cst)) {
      rendezvous_->wake();
    }
  }
  /// Another process of this host may have died, which had connections over a network: the service thread ends them.
  void suspect_deaths() {
    management_->orphans().suspect();
    wake_service();
  }
  RegionAges& region_ages() { return region_ages_; }
  /// Something was noted that a port shall tell once nobody holds a spin lock (Port::tell_seen): the service thread
  /// does.
  void tell_soon() {
    has_remarks_.store(true, std::memory_order_seq_cst);
    wake_service();
  }
  /// Where a port counts whose file lies at `path`; the same for all who ask. A file that can't be used is replaced by
  /// own memory, which RINGBOLT_LOG=debug tells. Throws std::bad_alloc.
  std::shared_ptr<cluster::CounterPage> counters(const std::string& path,
                                                 cluster::CounterPage::Port port = cluster::CounterPage::Port::own);
  std::shared_ptr<QueuePair> find(uint32_t qpn);
  /// The same for each packet of a network.
  QueuePairTable& packet_targets() { return packet_targets_; }
  /// Calls `use` with one after the other, without allocating: also where memory is short, and in destructors. No lock
  /// is held meanwhile; those that come meanwhile may be left out.
  template <class Use>
  void each_queue_pair(Use use) {
    for (auto one = queue_pair_after(0); one != nullptr; one = queue_pair_after(number_of(*one))) {
      use(*one);
    }
  }
  template <class Use>
  void each_completion_queue(Use use) {
    for (auto one = completion_queue_from(0); one != nullptr; one = completion_queue_from(index_of(*one) + 1)) {
      use(*one);
    }
  }

  /// Returns when no peer copies from or to the region of `key` any more; call after hiding it. Bounded: a peer that
  /// is stopped in the middle of a copy holds us up for at most kAccessDrainNs.
  void wait_for_accesses(uint32_t key);
  /// A queue pair has closed a window, and its send queue goes on once no peer uses the window's key any more, which
  /// the service thread finds out: who asks holds locks that come after those that it takes. Bounded as above.
  void ask_for_drain() {
    has_drains_.store(true, std::memory_order_seq_cst);
    wake_service();
  }
  /// The same for copies of ours for sends over the network, and for those that a profile has land in the wrong region
  /// (`is_wrapped`). Not from within a queue pair.
  void wait_for_own_copies(bool is_wrapped = false);

  /// Tells the peers that we exit, and what we have received. Further calls have no effect.
  void leave();
  /// In a forked child: the parent owns everything here.
  void abandon_after_fork();
  /// Interfaces have gone up or down, or their addresses changed. Service thread only.
  void look_at_addresses();
  /// A port may have gone up or down, or the addresses of interfaces changed: its contexts tell their programs. Service
  /// thread only.
  void look_at_ports(bool addresses_changed = false);
  bool is_abandoned() const { return is_abandoned_.load(std::memory_order_relaxed); }

 private:
  void on_ready(const std::shared_ptr<link::Peer>& peer) override;
  void on_offer(const std::shared_ptr<link::Peer>& peer, const link::Offer& offer, link::OfferFiles files) override;
  void on_withdraw(const std::shared_ptr<link::Peer>& peer, const link::Withdraw& withdraw) override;
  void on_refuse(const std::shared_ptr<link::Peer>& peer, const link::Refuse& refuse) override;
  void on_arena(const std::shared_ptr<link::Peer>& peer, const link::Arena& arena, base::UniqueFd memory) override;
  void on_release(const std::shared_ptr<link::Peer>& peer, const link::Release& release) override;
  void on_gone(const std::shared_ptr<link::Peer>& peer) override;
  void on_poke() override;
  void on_bell() override { has_bell_ = true; }
  void on_readable() override;

  std::shared_ptr<QueuePair> queue_pair_after(uint32_t qpn);
  /// The first one at that place of the wake table, or behind it.
  std::shared_ptr<CompletionQueue> completion_queue_from(uint32_t index);
  std::shared_ptr<CompletionQueue> completion_queue_at(uint32_t index);
  static uint32_t number_of(const QueuePair& qp);
  static uint32_t index_of(const CompletionQueue& queue);
  /// How often the service thread looks at what no bell announces; the faster, the greater.
  enum class Pace : uint8_t { sleeping, timers, work };
  /// A full fence comes first: what the caller has stored is seen by the service thread once it has taken a mark that
  /// is found here, or one that is made here; and it has not yet said that it sleeps, or hurry() finds that it does.
  /// Only those call who have something to wait for.
  void mark(const CompletionQueue& queue);
  void hurry(Pace pace) {
    for (Pace now = pace_.load(std::memory_order_relaxed); now < pace;) {
      if (pace_.compare_exchange_weak(now, pace, std::memory_order_seq_cst)) {
        rendezvous_->wake();
        return;
      }
    }
  }
  template <class Use>
  void each_marked_queue(Use use);
  void tell_freed(uint32_t arena_id);
  bool drain_windows();
  uint64_t release_late_events(uint64_t now_ns);
  void tell_remarks();
  void serve();
  int serve_once(int tick_ms);
  int next_tick_ms(int last_tick_ms);
  int agreed_tick_ms(int tick_ms, uint64_t look_at_ns);
  int linger(int last_tick_ms);
  std::shared_ptr<link::RemoteProcess> remote_of(const std::shared_ptr<link::Peer>& peer);

  std::shared_ptr<Fabric> fabric_;
  std::unique_ptr<PeerNotes> peer_notes_;
  link::RegionTable regions_;
  link::WakeTable wakes_;
  RegionAges region_ages_;
  link::OwnArenas arenas_;
  WindowBook windows_;
  std::atomic<uint32_t> next_pd_key_{1};
  base::Mutex counters_mutex_;  // a leaf
  std::unordered_map<std::string, std::shared_ptr<cluster::CounterPage>> counters_ RINGBOLT_GUARDED_BY(counters_mutex_);

  base::Mutex remotes_mutex_;  // a leaf: nothing is locked under it
  std::unordered_map<const link::Peer*, std::shared_ptr<link::RemoteProcess>> remotes_
      RINGBOLT_GUARDED_BY(remotes_mutex_);

  std::unique_ptr<link::Rendezvous> rendezvous_;
  std::unique_ptr<Management> management_;
  base::Mutex network_opening_;  // std::call_once must not be left by an exception where libgcc is linked in
  std::unique_ptr<Network> network_ RINGBOLT_GUARDED_BY(network_opening_);
  std::atomic<Network*> open_network_{nullptr};  // the same, for those who look without the lock

  base::Mutex registry_ RINGBOLT_ACQUIRED_BEFORE(counters_mutex_, remotes_mutex_);
  /// In an order, see each_queue_pair(); they end before the network does, whose batches they hold.
  std::map<uint32_t, std::shared_ptr<QueuePair>> queue_pairs_ RINGBOLT_GUARDED_BY(registry_);
  /// By their places in the wake table.
  std::map<uint32_t, std::shared_ptr<CompletionQueue>> completion_queues_ RINGBOLT_GUARDED_BY(registry_);
  QueuePairTable packet_targets_;  // of queue_pairs_, in step with it
  std::vector<Context*> contexts_ RINGBOLT_GUARDED_BY(registry_);
  uint32_t next_qp_index_ RINGBOLT_GUARDED_BY(registry_) = 0;

  std::atomic<bool> is_woken_{false};
  std::atomic<Pace> pace_{Pace::sleeping};
  NextLook next_look_;                   // at what is on the network
  std::atomic<bool> serves_all_{false};  // somebody does not know which completion queue it is
  int quiet_ticks_ = 0;                  // in a row with nothing to do; service thread only
  std::atomic<bool> has_drains_{false};
  std::atomic<bool> has_remarks_{false};
  bool has_run_short_ = false;  // of memory, and said so; service thread only
  std::atomic<bool> is_stopping_{false};
  std::atomic<bool> is_abandoned_{false};
  std::once_flag left_;
  bool has_bell_ = false;  // service thread only
  std::thread service_;
  std::unique_ptr<IdleWatch> idle_watch_;
};

}  // namespace ringbolt::device
