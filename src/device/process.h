#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "device/completion_queue.h"
#include "device/counter_pages.h"
#include "device/limits.h"
#include "device/management.h"
#include "device/network.h"
#include "device/numbered_objects.h"
#include "device/peer_notes.h"
#include "device/port.h"
#include "device/queue_pair_numbers.h"
#include "device/queue_pair_table.h"
#include "device/region_ages.h"
#include "device/remote_processes.h"
#include "device/service_thread.h"
#include "device/window_book.h"
#include "link/arena.h"
#include "link/region_table.h"
#include "link/remote_process.h"
#include "link/rendezvous.h"
#include "link/wake_table.h"

namespace ringbolt::device {

class Context;
class IdleWatch;
class QueuePair;

/// What a process has once, however many contexts it opens: its slot, its region table, what it knows of other
/// processes, its objects by their numbers, and the service thread, which does what nobody polls for and sleeps when
/// there is nothing to do. It joins these parts, and is what the rendezvous and the service thread tell of things.
/// Lock order: that of the contexts before completion queues before queue pairs; those of the parts are leaves, but for
/// that of the remote processes (see there).
/// Thread-safe.
/// Owned by its contexts, and whoever else holds Context::shared_process(). In a forked child it is abandoned: nothing
/// of it is used, and its destructor leaves alone what is the parent's.
class Process final : private link::RendezvousSink, private ServiceThread::Duties {
 public:
  /// Claims a slot and starts the service thread. Throws base::Error.
  explicit Process(std::shared_ptr<Fabric> fabric);
  ~Process() override;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  const Fabric& fabric() const { return *fabric_; }
  link::RegionTable& regions() { return regions_; }
  link::OwnArenas& arenas() { return remotes_.arenas(); }
  link::WakeTable& wakes() { return wakes_; }
  WindowBook& windows() { return windows_; }
  /// Null unless RINGBOLT_EXPLAIN asks for it.
  PeerNotes* peer_notes() const { return peer_notes_.get(); }
  /// Queue pair 1: management datagrams for the connection manager.
  Management& management() { return *management_; }
  /// Opens the network at the first call. Throws base::Error.
  /// The reference is good as long as the process. Blocks while another thread opens it, and that as long as joining
  /// the port's other processes takes (UdpGroup).
  Network& open_network();
  /// Only after open_network().
  Network& network() { return *open_network_.load(std::memory_order_acquire); }
  /// Never given out twice, so that a domain that is gone opens nothing. Relaxed: only its being different matters.
  uint32_t next_pd_key() { return next_pd_key_.fetch_add(1, std::memory_order_relaxed); }

  /// Shareable memory, known to every peer. ENOMEM, EMFILE.
  base::Result<std::byte*> allocate_buffer(size_t length_bytes) { return remotes_.allocate(length_bytes); }
  /// The program needs it no longer. It is gone, here and at the peers, once the last region over it is, too.
  void free_buffer(void* address);
  /// A region over the arena is gone; 0: it was over none.
  void drop_arena(uint32_t arena_id) { remotes_.drop(arena_id); }

  /// Gives the queue pair a number that was not used for long. ENOMEM when all are taken.
  /// From here on the service thread and those who read packets find it. Throws std::bad_alloc.
  base::Result<uint32_t> add(const std::shared_ptr<QueuePair>& qp);
  /// Waits until nobody who reads packets has it any more: not from within such a reading (QueuePairTable).
  void remove(const QueuePair& qp);
  /// Throws std::bad_alloc.
  void add(const std::shared_ptr<CompletionQueue>& cq);
  void remove(const CompletionQueue& cq);
  // A context adds itself when it is whole, and is out before it ends: remove() waits for who looks at contexts.
  void add(Context* context) RINGBOLT_EXCLUDES(contexts_mutex_);
  void remove(Context* context) RINGBOLT_EXCLUDES(contexts_mutex_);

  /// The process that owns the queue pair number; nothing when there is none. Never blocks for long.
  /// Throws std::bad_alloc. errno says what was wanting where this process can't reach it: see Rendezvous::peer_at().
  std::shared_ptr<link::RemoteProcess> owner_of(uint32_t qpn);

  /// Somebody must get on with queued work although no program thread may poll: the service thread looks at that
  /// completion queue, at once unless it is at work already; or at all of them; or, for sends that nothing ails so far,
  /// at their timers from time to time.
  void request_service(const CompletionQueue& queue) { service_.request(queue.wake_name().index); }
  void request_service() { service_.request_all(); }
  void watch_timers(const CompletionQueue& queue) { service_.watch_timers(queue.wake_name().index); }
  /// A timer of a queue pair on the network runs out then, and deadline_ns() of it says so, or an event is late until
  /// then: the service thread looks in time, whether anybody polls or not.
  void watch_until(uint64_t deadline_ns) { service_.watch_until(deadline_ns); }
  /// Packets wait for queue pairs that nobody polls.
  void wake_service() { service_.wake(); }
  /// Messages of peers, or their ends, wait for the service thread. A system call.
  bool is_behind() const { return rendezvous_->has_pending(); }
  /// Another process of this host may have died, which had connections over a network: the service thread ends them.
  void suspect_deaths() {
    management_->orphans().suspect();
    wake_service();
  }
  RegionAges& region_ages() { return region_ages_; }
  /// Something was noted that a port shall tell once nobody holds a spin lock (Port::tell_seen): the service thread
  /// does.
  void tell_soon() { service_.tell_soon(); }
  /// Where a port counts whose file lies at `path`; the same for all who ask. A file that can't be used is replaced by
  /// own memory, which RINGBOLT_LOG=debug tells. Throws std::bad_alloc.
  std::shared_ptr<cluster::CounterPage> counters(const std::string& path,
                                                 cluster::CounterPage::Port port = cluster::CounterPage::Port::own) {
    return counters_.at(path, port);
  }
  /// Null: there is none, or none any more.
  std::shared_ptr<QueuePair> find(uint32_t qpn) { return queue_pairs_.find(qpn); }
  /// The same for each packet of a network.
  QueuePairTable& packet_targets() { return packet_targets_; }
  /// Calls `use` with each, see NumberedObjects::each(): no lock is held meanwhile.
  template <class Use>
  void each_queue_pair(Use use) {
    queue_pairs_.each(use);
  }
  template <class Use>
  void each_completion_queue(Use use) {
    completion_queues_.each(use);
  }

  /// Returns when no peer copies from or to the region of `key` any more; call after hiding it. Bounded: a peer that
  /// is stopped in the middle of a copy holds us up for at most kAccessDrainNs.
  /// Under no lock of a queue pair: it takes those for receiving of all.
  void wait_for_accesses(uint32_t key);
  /// A queue pair has closed a window, and its send queue goes on once no peer uses the window's key any more, which
  /// the service thread finds out: who asks holds its queue pair's lock, and to find out takes those of all others.
  /// Bounded as above.
  void ask_for_drain() { service_.ask_for_drain(); }
  /// The same for copies of ours for sends over the network, and for those that a profile has land in the wrong region
  /// (`is_wrapped`). Not from within a queue pair.
  void wait_for_own_copies(bool is_wrapped = false);

  /// Tells the peers that we exit, and what we have received. Further calls have no effect.
  /// Blocks, within bounds: for sends that are told already and not delivered, and for what is left in sockets. Any
  /// thread, also at exit; the second caller waits for the first.
  void leave();
  /// In a forked child: the parent owns everything here.
  /// Takes no lock: whoever held it stayed with the parent. Closes the child's copies of descriptors, and says nothing.
  void abandon_after_fork();
  /// Interfaces have gone up or down, or their addresses changed. Service thread only.
  void look_at_addresses();
  /// A port may have gone up or down, or the addresses of interfaces changed: its contexts tell their programs. Service
  /// thread only.
  void look_at_ports(bool addresses_changed = false) RINGBOLT_EXCLUDES(contexts_mutex_);
  bool is_abandoned() const { return is_abandoned_.load(std::memory_order_relaxed); }

 private:
  // On the service thread, without locks held: see link::RendezvousSink. What they throw for want of memory gets no
  // further than ServiceThread::run().
  void on_ready(const std::shared_ptr<link::Peer>& peer) override;
  void on_offer(const std::shared_ptr<link::Peer>& peer, const link::Offer& offer, link::OfferFiles files) override;
  void on_withdraw(const std::shared_ptr<link::Peer>& peer, const link::Withdraw& withdraw) override;
  void on_refuse(const std::shared_ptr<link::Peer>& peer, const link::Refuse& refuse) override;
  void on_arena(const std::shared_ptr<link::Peer>& peer, const link::Arena& arena, base::UniqueFd memory) override;
  void on_release(const std::shared_ptr<link::Peer>& peer, const link::Release& release) override;
  void on_gone(const std::shared_ptr<link::Peer>& peer) override;
  void on_poke() override;
  void on_bell() override { service_.note_bell(); }
  void on_readable() override;

  ServiceFindings serve(uint64_t now_ns, bool looks_at_all) override RINGBOLT_EXCLUDES(contexts_mutex_);
  bool drain_windows() override;
  void tell_remarks() override RINGBOLT_EXCLUDES(contexts_mutex_);

  std::unique_ptr<link::Rendezvous> open_rendezvous();
  uint64_t release_late_events(uint64_t now_ns) RINGBOLT_EXCLUDES(contexts_mutex_);

  // Members end in the reverse order. The service thread has ended before (see the destructor);
  // the object outlives all that may still ask it for something: queue pairs, the network, and management. The
  // rendezvous, which it waits in and which holds the tables' descriptors, outlives it. Queue pairs end before the
  // network does, whose batches they hold.
  std::shared_ptr<Fabric> fabric_;
  std::unique_ptr<PeerNotes> peer_notes_;
  link::RegionTable regions_;
  link::WakeTable wakes_;
  RegionAges region_ages_;
  WindowBook windows_;
  std::atomic<uint32_t> next_pd_key_{1};
  CounterPages counters_;
  RemoteProcesses remotes_;

  std::unique_ptr<link::Rendezvous> rendezvous_;
  ServiceThread service_;
  std::unique_ptr<Management> management_;
  base::Mutex network_opening_;  // std::call_once must not be left by an exception where libgcc is linked in
  std::unique_ptr<Network> network_ RINGBOLT_GUARDED_BY(network_opening_);
  std::atomic<Network*> open_network_{nullptr};  // the same, for those who look without the lock

  QueuePairNumbers qp_numbers_;
  NumberedObjects<QueuePair> queue_pairs_;              // by queue pair number
  NumberedObjects<CompletionQueue> completion_queues_;  // by their places in the wake table
  QueuePairTable packet_targets_;                       // of queue_pairs_, in step with it
  base::Mutex contexts_mutex_;  // held while contexts are looked at, which then can't end: before all others
  std::vector<Context*> contexts_ RINGBOLT_GUARDED_BY(contexts_mutex_);

  std::atomic<bool> is_abandoned_{false};
  std::once_flag left_;
  std::unique_ptr<IdleWatch> idle_watch_;
};

}  // namespace ringbolt::device
