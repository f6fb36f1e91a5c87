#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/calling_place.h"
#include "base/mutex.h"
#include "sanitizer/request.h"
#include "sanitizer/sends_under_way.h"

namespace ringbolt::sanitizer {

/// Posts reach the device in the order in which they are noted: whoever posts holds the lock of its queue from the note
/// on, and takes the lock of Shadow meanwhile. Nobody holds those of two queues.
// One name for the locks of all queues in clang's thread-safety analysis, which can't tell them apart.
class RINGBOLT_CAPABILITY("role") PostingRole {};
inline PostingRole order_of_posts;

/// Holds the order of the posts to one queue until the end of the scope.
/// Taken before the lock of Shadow, never after it; held across the device's post. `order` must stay: nobody may
/// destroy the queue while he posts to it.
class RINGBOLT_SCOPED_CAPABILITY PostGuard {
 public:
  explicit PostGuard(base::Mutex& order) RINGBOLT_ACQUIRE(order_of_posts) RINGBOLT_NOT_ANALYSED : order_(order) {
    order_.lock();
  }
  PostGuard(const PostGuard&) = delete;
  PostGuard& operator=(const PostGuard&) = delete;
  ~PostGuard() RINGBOLT_RELEASE() RINGBOLT_NOT_ANALYSED { order_.unlock(); }

 private:
  base::Mutex& order_;
};

/// How much may come to a completion queue before its program polls, and whether the program may sleep through it.
/// Under the lock of Shadow.
class CompletionQueue {
 public:
  /// `channel`: null: of none. Not followed.
  CompletionQueue(uint32_t entries, const ibv_comp_channel* channel, const base::CallSite& made)
      : entries_(entries), channel_(channel), made_(made) {}

  void resize(uint32_t entries) { entries_ = entries; }
  uint32_t entries() const { return entries_; }
  const base::CallSite& made() const { return made_; }

  /// A request is posted that completes here; its completion was polled, or will never come.
  void expect() { ++expected_; }
  void settle() { --expected_; }
  /// Completions of requests of its own queues that nobody has polled. Those of shared receive queues may go to one of
  /// several queues, and are not of them.
  uint32_t expected() const { return expected_; }
  bool has_room_for(uint32_t more) const { return expected_ + more <= entries_; }

  /// `is_late`: something might complete at that moment. What was in the queue before raises no event (InfiniBand
  /// Architecture Specification 1.4, 11.4.2.2).
  void arm(const base::CallSite& site, bool is_late) {
    armed_ = site;
    is_armed_late_ = is_late;
  }
  const base::CallSite& armed() const { return armed_; }
  void note_poll() { is_armed_late_ = false; }
  /// Who sleeps at the channel may have missed what came before it armed the queue.
  bool may_miss_event_of(const ibv_comp_channel& channel) const { return channel_ == &channel && is_armed_late_; }

 private:
  // As granted: ibv_cq::cqe.
  uint32_t entries_;
  uint32_t expected_ = 0;
  const ibv_comp_channel* const channel_;
  const base::CallSite made_;
  base::CallSite armed_{};
  bool is_armed_late_ = false;  // and nobody has polled since
};

/// But for the lock under that of Shadow.
struct SharedQueue {
  base::Mutex order RINGBOLT_HELD_AS(order_of_posts);  ///< from the note of a post to the device's having it
  uint32_t posted = 0;
};

/// What the program has made of a queue pair, and what it has under way. But for the locks under that of Shadow.
struct QueuePair {
  // The program's; followed within its own calls alone.
  ibv_qp* c = nullptr;
  uint32_t qpn = 0;  ///< as the others: still known where the program has destroyed it meanwhile
  ibv_qp_type type = IBV_QPT_RC;
  ibv_qp_cap caps{};
  bool signals_all = false;
  bool is_on_network = false;          ///< its device is
  bool keeps = false;                  ///< what it receives may wait elsewhere: its device is a plain one
  bool names_refused = true;           ///< in bad_wr, of each list that its device does not take whole
  CompletionQueue* send_cq = nullptr;  ///< null: one that nobody has told of
  CompletionQueue* receive_cq = nullptr;
  SharedQueue* srq = nullptr;
  ibv_qp_state told = IBV_QPS_RESET;  ///< by the program
  uint64_t peer = 0;                  ///< whose process it leads to, as far as it can be told apart
  base::Mutex send_order RINGBOLT_HELD_AS(order_of_posts);  ///< as SharedQueue::order
  base::Mutex receive_order RINGBOLT_HELD_AS(order_of_posts);
  SendsUnderWay sends;
  // To this queue pair and not settled yet; those of a shared queue are counted there.
  uint32_t receives = 0;    ///< posted
  base::CallSite failed{};  ///< where an error completion of it was polled
  ibv_wc_status failure = IBV_WC_SUCCESS;

  /// It takes up receives (InfiniBand Architecture Specification 1.4, 10.3.1).
  bool can_receive() const { return told == IBV_QPS_RTR || told == IBV_QPS_RTS; }
  /// A completion says that it failed. Datagram queue pairs go on after most failures, and who has ended a queue pair
  /// himself knows that it is.
  void note_outcome(ibv_wc_status status, const base::CallSite& polled) {
    if (status != IBV_WC_SUCCESS && type != IBV_QPT_UD && told != IBV_QPS_ERR && !failed) {
      failed = polled;
      failure = status;
    }
  }
};

/// Counts a request where it was posted and where it completes, from when the device is to have it; and no more.
/// Under the lock of Shadow. Each is called once for a request: by insert and by take_out.
void count_in(const Request& request);
void count_out(const Request& request);

/// Not 0: whose memory requests of a queue pair reach, by the attributes that make it ready to receive. On one host the
/// numbers of queue pairs name the process, by whatever port it is reached. Pure.
uint64_t peer_of(const ibv_qp_attr& attributes, bool is_on_network);

/// The queues of the program, by its pointers, which are not followed. Owns them from add() to remove(); what it gives
/// out stays where it is until then. Under the lock of Shadow.
class Queues {
 public:
  CompletionQueue& add(const ibv_cq& c, const base::CallSite& made);
  SharedQueue& add(const ibv_srq& c);
  /// `wanted`: as the program asked for it; `granted`: what it got.
  /// An older one of the same pointer is replaced: the program has destroyed it where nobody was told.
  QueuePair& add(ibv_qp& c, const ibv_qp_init_attr& wanted, const ibv_qp_cap& granted);

  // Null: there is none.
  CompletionQueue* find(const ibv_cq* c) const { return find_in(completion_queues_, c); }
  SharedQueue* find(const ibv_srq* c) const { return find_in(shared_, c); }
  QueuePair* find(const ibv_qp* c) const { return find_in(queue_pairs_, c); }

  // Nothing is under way on them any more.
  // Queue pairs keep pointers to their completion queue: the device answers EBUSY while there are any, so it goes
  // after them.
  void remove(const ibv_cq& c) { completion_queues_.erase(&c); }
  void remove(const ibv_srq& c) { shared_.erase(&c); }
  void remove(const ibv_qp& c) { queue_pairs_.erase(&c); }
  void clear();

  template <class Visit>
  void each_completion_queue(Visit&& visit) const {
    for (const auto& [c, one] : completion_queues_) {
      visit(*one);
    }
  }
  /// The queue pairs that receive from the shared queue.
  template <class Visit>
  void each_of(const SharedQueue& srq, Visit&& visit) const {
    for (const auto& [c, one] : queue_pairs_) {
      if (one->srq == &srq) {
        visit(*one);
      }
    }
  }
  /// Whether something under way may complete to the queue at any time.
  /// Goes through all queue pairs: for arming, which is rare beside posts.
  bool may_complete_to(const CompletionQueue& queue) const;
  /// Whether the device may still read or write the request's memory: a queue pair that has ended does nothing with its
  /// requests but flush them.
  bool may_execute(const Request& request) const;

 private:
  template <class C, class One>
  using Map = std::unordered_map<const C*, std::unique_ptr<One>>;
  template <class C, class One>
  static One* find_in(const Map<C, One>& map, const C* c) {
    const auto known = map.find(c);
    return known == map.end() ? nullptr : known->second.get();
  }

  Map<ibv_cq, CompletionQueue> completion_queues_;
  Map<ibv_srq, SharedQueue> shared_;
  Map<ibv_qp, QueuePair> queue_pairs_;
};

}  // namespace ringbolt::sanitizer
