#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/explain.h"
#include "base/lock_guard.h"
#include "base/mutex.h"
#include "device/half_locks.h"
#include "device/limits.h"
#include "device/receive_ring.h"
#include "trace/tick_clock.h"

namespace ringbolt::device {

/// Whence a list of requests comes. The device's own `wr_id`s may be other numbers than the program's, where the
/// sanitizer stands between them.
template <class Wr>
struct Posting {
  base::CallSite site{};
  uint64_t ticks = 0;            ///< the recorder's time of the call; 0: nobody has looked, and it is to be looked now
  const Wr* original = nullptr;  ///< the list as the program gave it; null: it is the one that is posted
};
using SendPosting = Posting<ibv_send_wr>;
using ReceivePosting = Posting<ibv_recv_wr>;

/// A receive that was posted, as the program knows it.
struct NotedReceive {
  uint64_t wr_id = 0;
  base::CallSite site{};
};

/// What RINGBOLT_EXPLAIN needs to know of a queue pair beside what the device does: where each request was posted, and
/// what failed it. Only while explaining; there is none otherwise.
class QueuePairNotes {
 public:
  /// One cache line: each post writes one.
  struct alignas(64) Send {
    base::CallSite site;
    uint64_t ticks = 0;  ///< when; 0: the post goes on
    uint64_t wr_id = 0;
    uint64_t address = 0;  ///< remote, as the key
    uint32_t key = 0;
    uint32_t length = 0;
    /// How many notes of processes there were before, modulo 2^32: what the peer says of it is newer.
    uint32_t peer_notes = 0;
    uint8_t code = IBV_WR_SEND;
    uint8_t pieces = 0;
    bool is_signaled = false;

    ibv_wr_opcode opcode() const { return static_cast<ibv_wr_opcode>(code); }
  };
  static_assert(sizeof(Send) == 64 && kMaxSge <= UINT8_MAX);

  /// Throws std::bad_alloc. `splits_pieces`: a request of several pieces takes as many places (profile::Knobs).
  QueuePairNotes(size_t send_slots, uint32_t send_pieces, uint32_t receive_depth, bool splits_pieces)
      : splits_pieces_(splits_pieces),
        sends_(send_slots),
        most_pieces_(send_pieces),
        pieces_(send_slots * send_pieces),
        receives_(size_t{receive_depth} + 1) {}

  /// Of a request's places.
  uint32_t places_of(int pieces) const { return splits_pieces_ && pieces > 1 ? static_cast<uint32_t>(pieces) : 1; }
  /// `wr_id`: the program's. `peer_notes`: as Send has them.
  void note_send(uint32_t place, const ibv_send_wr& wr, uint64_t wr_id, const SendPosting& from, uint64_t peer_notes)
      RINGBOLT_REQUIRES(send_half);
  /// The clock is read when the peer has the request, so that it need not wait for that.
  void note_time_of_send(uint32_t place, uint64_t ticks) RINGBOLT_REQUIRES(send_half) { sends_[place].ticks = ticks; }
  uint64_t ticks_now() const noexcept { return clock_.now(); }
  /// When it was posted, by CLOCK_MONOTONIC.
  uint64_t posted_ns(const Send& send) const;
  /// The newest; its place.
  uint32_t last_send() const RINGBOLT_REQUIRES(send_half) { return last_send_; }
  bool has_sent() const RINGBOLT_REQUIRES(send_half) { return has_sent_; }
  const Send& send(uint32_t place) const RINGBOLT_REQUIRES(send_half) { return sends_[place]; }
  const ibv_sge* pieces(uint32_t place) const RINGBOLT_REQUIRES(send_half) {
    return pieces_.data() + size_t{place} * most_pieces_;
  }

  /// So much of the list was taken, in places.
  void note_receives(const ibv_recv_wr* list, uint32_t posted, const ReceivePosting& from)
      RINGBOLT_REQUIRES(receive_half) {
    const ibv_recv_wr* const original = from.original != nullptr ? from.original : list;
    if (posted == 1) [[likely]] {  // the first of the list, if it has others
      note_receive(original->wr_id, from.site);
      last_receive_ticks_ = from.ticks != 0 ? from.ticks : clock_.now();
    } else {
      note_receive_list(original, posted, from);
    }
  }
  /// The receive that was taken last, behind which so many are posted.
  NotedReceive taken_receive(uint32_t behind) const RINGBOLT_REQUIRES(receive_half);
  /// "no receive was ever posted"; "0 receives are posted; 32 were, the last 3.0 s ago at server.c:90".
  std::string receives_text(uint32_t posted) const RINGBOLT_REQUIRES(receive_half);
  /// A message finds no receive: whether that is news since the last time.
  bool note_starved(uint64_t now_ns) RINGBOLT_REQUIRES(receive_half);

  // What is about to fail a send, a receive, or all. The first word stands. Thread-safe.
  void say_why_send(base::Explanation why);
  void say_why_receive(base::Explanation why);
  void say_ended(std::string by);
  std::optional<base::Explanation> take_why_send();
  std::optional<base::Explanation> take_why_receive();
  /// What ended the queue pair, once; empty: nothing that was an error, or it was asked for.
  std::string take_ended();
  /// The step to RESET.
  void clear();

 private:
  void note_receive(uint64_t wr_id, const base::CallSite& site) RINGBOLT_REQUIRES(receive_half) {
    NotedReceive& note = receives_[next_receive_];
    note.wr_id = wr_id;
    note.site = site;
    next_receive_ = next_receive_ + 1 == receives_.size() ? 0 : next_receive_ + 1;
    ++receives_posted_;
  }
  void note_receive_list(const ibv_recv_wr* original, uint32_t posted, const ReceivePosting& from)
      RINGBOLT_REQUIRES(receive_half);

  const trace::TickClock clock_;
  const bool splits_pieces_;
  std::vector<Send> sends_ RINGBOLT_GUARDED_BY(send_half);
  uint32_t last_send_ RINGBOLT_GUARDED_BY(send_half) = 0;
  bool has_sent_ RINGBOLT_GUARDED_BY(send_half) = false;
  const uint32_t most_pieces_;
  std::vector<ibv_sge> pieces_ RINGBOLT_GUARDED_BY(send_half);
  std::vector<NotedReceive> receives_ RINGBOLT_GUARDED_BY(receive_half);  // by their numbers
  size_t next_receive_ RINGBOLT_GUARDED_BY(receive_half) = 0;
  uint64_t receives_posted_ RINGBOLT_GUARDED_BY(receive_half) = 0;
  uint64_t last_receive_ticks_ RINGBOLT_GUARDED_BY(receive_half) = 0;
  uint64_t starved_at_ RINGBOLT_GUARDED_BY(receive_half) = UINT64_MAX;  // how many were posted then
  uint64_t starved_ns_ RINGBOLT_GUARDED_BY(receive_half) = 0;
  base::Mutex mutex_;  // a leaf
  std::optional<base::Explanation> send_why_ RINGBOLT_GUARDED_BY(mutex_);
  std::optional<base::Explanation> receive_why_ RINGBOLT_GUARDED_BY(mutex_);
  std::string ended_by_ RINGBOLT_GUARDED_BY(mutex_);
  bool is_ended_ RINGBOLT_GUARDED_BY(mutex_) = false;
};

// Within post(), which would spend as much on the call as on the note.
inline void QueuePairNotes::note_send(uint32_t place, const ibv_send_wr& wr, uint64_t wr_id, const SendPosting& from,
                                      uint64_t peer_notes) {
  Send& note = sends_[place];
  note.site = from.site;
  note.ticks = from.ticks;
  note.wr_id = wr_id;
  note.peer_notes = static_cast<uint32_t>(peer_notes);
  note.code = static_cast<uint8_t>(wr.opcode);  // of an opcode that is none the post is about to be refused
  note.is_signaled = (wr.send_flags & IBV_SEND_SIGNALED) != 0;
  const bool is_atomic = wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  note.key = is_atomic ? wr.wr.atomic.rkey : wr.wr.rdma.rkey;
  note.address = is_atomic ? wr.wr.atomic.remote_addr : wr.wr.rdma.remote_addr;
  last_send_ = place;
  has_sent_ = true;
  const bool has_pieces = wr.opcode != IBV_WR_BIND_MW && wr.opcode != IBV_WR_LOCAL_INV;  // else they are anything
  const uint32_t count = wr.num_sge < 0 || !has_pieces ? 0 : std::min(static_cast<uint32_t>(wr.num_sge), most_pieces_);
  note.pieces = static_cast<uint8_t>(count);
  uint32_t length = 0;
  ibv_sge* const pieces = pieces_.data() + size_t{place} * most_pieces_;
  for (uint32_t i = 0; i < count; ++i) {
    pieces[i] = wr.sg_list[i];
    length += wr.sg_list[i].length;
  }
  note.length = length;
}

}  // namespace ringbolt::device
