#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/calling_place.h"
#include "base/mutex.h"
#include "sanitizer/kept_memories.h"
#include "sanitizer/owned_objects.h"
#include "sanitizer/portable_use.h"
#include "sanitizer/queues.h"
#include "sanitizer/regions.h"
#include "sanitizer/remembered.h"
#include "sanitizer/remote_accesses.h"
#include "sanitizer/reports.h"
#include "sanitizer/request_table.h"
#include "sanitizer/wish.h"

namespace ringbolt::sanitizer {

/// Second account of what the program has posted, registered and made, in which its mistakes are seen. One a process,
/// between the program and the device: the border calls it in place of the device's own calls where somebody wants to
/// hear of mistakes, and never else. Thread-safe.
///
/// Its parts know no device, and are under its lock but where they say otherwise:
///
///   RequestTable     requests that the device has, and the memory here that they read and write: find_overlaps()
///   Queues           what is posted to each queue, and what may complete to it: queue_rules.h
///   Regions          where pieces of requests lie, and where peers may write: region_use.h
///   KeptMemories     memory of ours where data wait: sent_data.h, received_data.h, which work on one request's bytes
///   RemoteAccesses   what accesses peers' memory
///   OwnedObjects     what the program must destroy
///   PortableUse      what other machines refuse
///   Reports          who hears of it
///
/// Requests go to the device under numbers of ours in `wr_id`, so that each completion is found again whatever the
/// program calls its requests; what it polls has its own numbers. Data that are received wait in memory of ours until
/// their completion is polled.
///
/// No pointer to an object of the program is followed but within calls that name it.
class Shadow {
 public:
  /// The device's.
  /// Functions of the border's own device, which must not come back here.
  struct Calls {
    int (*post_send)(ibv_qp*, ibv_send_wr*, ibv_send_wr**);
    int (*post_receive)(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**);
    int (*post_srq_receive)(ibv_srq*, ibv_recv_wr*, ibv_recv_wr**);
    int (*poll_cq)(ibv_cq*, int, ibv_wc*);
    KeptMemory::Calls memory;
    std::string race_table;  ///< path of the file
  };

  /// Reads the environment (Reports). Throws std::bad_alloc.
  Shadow(const Wish& wish, const Calls& calls);
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  // The calls of a context's table, as the verbs have them. `site`: of the program's call.
  /// `bad` may be null, and is left as it was where the device leaves it so. Returns what the device answers. A queue
  /// that nobody has told of goes to the device as it is. Throws std::bad_alloc before the device has anything.
  int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad, const base::CallSite& site);
  int post_receive(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad, const base::CallSite& site);
  int post_srq_receive(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad, const base::CallSite& site);
  /// Gives the program its own `wr_id` and its data back before it returns.
  int poll_cq(ibv_cq* cq, int count, ibv_wc* wc, const base::CallSite& site);
  /// The queue is about to be armed.
  /// Told before the device does it: what completes in between counts as late.
  void arming(ibv_cq* cq, const base::CallSite& site);

  // What comes and goes. `gone` is told before the device gives the memory back.
  void made(ObjectKind kind, const void* object, const base::CallSite& site);
  void gone(const void* object);
  void busy(const void* object, const base::CallSite& site);
  /// Waits for other threads that just copy out of its memory, and tell what they find there.
  void domain_goes(ibv_pd* pd);
  void region_made(const ibv_mr& mr, uint64_t iova, uint32_t access, const base::CallSite& site);
  /// `call`: ibv_dereg_mr or ibv_rereg_mr.
  void region_goes(const ibv_mr& mr, std::string_view call, const base::CallSite& site);
  /// `moves`: it has another place or length, of its own address; `access`: the new one, if it is another.
  void region_changed(const ibv_mr& mr, bool moves, std::optional<uint32_t> access);
  void queue_made(const ibv_cq& cq, const base::CallSite& site);
  void queue_resized(const ibv_cq& cq);
  /// Only when the device has agreed, as for the others that go.
  void queue_gone(const ibv_cq& cq);
  void shared_queue_made(ibv_srq& srq, const base::CallSite& site);
  void shared_queue_gone(const ibv_srq& srq);
  /// What the device says of a queue pair: see QueuePair.
  struct Nature {
    bool keeps;
    bool names_refused;
    bool is_on_network;
  };
  /// `wanted`: as the program asked for it; `granted`: what it got.
  void queue_pair_made(ibv_qp& qp, const ibv_qp_init_attr& wanted, const ibv_qp_cap& granted, Nature nature,
                       const base::CallSite& site);
  void queue_pair_changed(const ibv_qp& qp, const ibv_qp_attr& attributes, int mask, const base::CallSite& site);
  void queue_pair_gone(const ibv_qp& qp);
  /// The program has asked for addresses of the port, and may know what it says of them.
  void looked_up(const ibv_context* context);
  void address_handle_made(const ibv_ah& ah, const ibv_ah_attr& attributes, const base::CallSite& site);

  /// The program is about to sleep until an event of the channel comes. `has_event`: there is one.
  void sleeping(const ibv_comp_channel& channel, bool has_event, const base::CallSite& site);
  /// A destroy has waited for the acknowledgement of so many events, in vain.
  void unacknowledged(std::string_view call, uint32_t events, const base::CallSite& site);

  const Wish& wish() const { return wish_; }
  /// What was never destroyed. Once, at the end of the process.
  void report_leaks();
  Reports& reports() { return reports_; }

  // Around fork: the child begins with nothing.
  /// So the child finds the parts whole, whatever other threads were about.
  void before_fork() RINGBOLT_ACQUIRE(mutex_) {
    mutex_.lock();
    reports_.before_fork();  // nobody tells under mutex_, so the order is always this
  }
  void in_parent() RINGBOLT_RELEASE(mutex_) {
    reports_.in_parent();
    mutex_.unlock();
  }
  void in_child() RINGBOLT_RELEASE(mutex_);

 private:
  using Owner = RequestTable::Owner;

  // Posts.
  template <class Object, class Post>
  int post_receives(Object* c, Post post, QueuePair* qp, SharedQueue* srq, ibv_recv_wr* wr, ibv_recv_wr** bad,
                    const base::CallSite& site);
  /// The number of the request; `wr` is as the device shall have it.
  uint32_t open_send(QueuePair& qp, ibv_send_wr& wr, const base::CallSite& site) RINGBOLT_REQUIRES(order_of_posts);
  uint32_t open_receive(QueuePair* qp, SharedQueue* srq, ibv_pd* pd, ibv_recv_wr& wr, const base::CallSite& site)
      RINGBOLT_REQUIRES(order_of_posts);
  void resolve(Request& request, const ibv_sge* list, int count) RINGBOLT_REQUIRES(mutex_);
  /// Puts memory of ours in place of the request's; false: there is none.
  bool take_kept(Request& request, ibv_sge* list) RINGBOLT_REQUIRES(mutex_);
  /// Has the device receive into memory of ours, where that can be.
  void hold_back_data(Request& request, ibv_sge* list) RINGBOLT_REQUIRES(mutex_);
  /// Looks at what is sent, and has the device send a copy of it, where that can be.
  void inspect_source(Request& request, ibv_sge* list, bool may_be_copied);
  /// `pieces`: what it sends. All of it is mapped.
  void find_poison_in(const Request& request, std::span<const Piece> pieces);
  /// `error`: of the device.
  void after_send(const QueuePair& qp, int error, const base::CallSite& site);
  void after_receive(const QueuePair* qp, const SharedQueue* srq, const base::CallSite& site);

  // Requests that are over.
  Owner take_out(uint32_t number) RINGBOLT_REQUIRES(mutex_);
  /// It was never posted, or its queue is gone: nothing is checked, and the memory is as it was.
  void drop(uint32_t number) RINGBOLT_REQUIRES(mutex_);
  void drop_all(const std::vector<uint32_t>& numbers) RINGBOLT_REQUIRES(mutex_);
  /// Those of a post from the place in it on that was refused.
  void drop_from(const std::vector<uint32_t>& numbers, size_t first) RINGBOLT_EXCLUDES(mutex_);
  void settle(ibv_wc& wc, const base::CallSite& site);
  void finish(Request& request, const ibv_wc& wc, const base::CallSite& site);

  void check_path(const ibv_context* context, const ibv_ah_attr& path, const base::CallSite& site);
  QueuePair* find(const ibv_qp* qp);
  SharedQueue* find(const ibv_srq* srq);
  /// Where somebody wants to hear of it. Not under the lock: to find a line in the program takes milliseconds.
  void tell(const std::optional<Finding>& found) RINGBOLT_EXCLUDES(mutex_);
  void tell_all(const std::vector<Finding>& found) RINGBOLT_EXCLUDES(mutex_);

  const Wish wish_;
  const Calls calls_;
  Reports reports_;
  const PortableUse portable_;

  // Held for single steps: not while the device posts or polls, while data are copied out, or while somebody is told.
  base::Mutex mutex_ RINGBOLT_ACQUIRED_AFTER(order_of_posts);
  RequestTable requests_ RINGBOLT_GUARDED_BY(mutex_);
  Remembered<base::CallSite> poisoned_ RINGBOLT_GUARDED_BY(mutex_);  // where those were posted
  Regions regions_ RINGBOLT_GUARDED_BY(mutex_);
  KeptMemories kept_ RINGBOLT_GUARDED_BY(mutex_);
  Queues queues_ RINGBOLT_GUARDED_BY(mutex_);
  RemoteAccesses remote_ RINGBOLT_GUARDED_BY(mutex_);
  std::unordered_set<const ibv_context*> looked_up_ RINGBOLT_GUARDED_BY(mutex_);
  OwnedObjects owned_ RINGBOLT_GUARDED_BY(mutex_);
};

}  // namespace ringbolt::sanitizer
