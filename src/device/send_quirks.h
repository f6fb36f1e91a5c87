#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/call_stream.h"
#include "device/completion_queue.h"
#include "device/half_locks.h"
#include "device/queue_pair_core.h"
#include "device/send_request.h"
#include "device/send_shuffle.h"

namespace ringbolt::device {

class SendQueue;

/// A copy of what a send carries.
struct StagedBytes {
  std::unique_ptr<std::byte[]> bytes;  // NOLINT: a vector would be filled with zeros first
  uint32_t length = 0;
  std::span<std::byte> span() const { return {bytes.get(), length}; }
};

/// What happens to one send besides being executed and completed, where a profile or a fault wants that.
struct SendQuirk {
  uint64_t departs_ns = 0;    ///< not before
  uint64_t tells_ns = 0;      ///< likewise its completion
  uint64_t number = 0;        ///< of the message, as faults count
  uint32_t losses = 0;        ///< tries that nobody answered
  uint32_t refusals = 0;      ///< tries that found no receive
  bool is_early = false;      ///< it completes before it is delivered
  bool is_staged = false;     ///< its bytes are copied: the program's memory is free again
  bool is_told = false;       ///< its completion came before its delivery
  bool is_held = false;       ///< it departs later than the cable alone would have it
  bool is_lost = false;       ///< this try comes to nothing
  bool is_not_ready = false;  ///< likewise, and the receiver says so
  bool is_judged = false;     ///< faults have been asked about its completion
  bool is_missing = false;    ///< its completion never comes
  bool is_part = false;       ///< of a request whose other parts follow; its completion is theirs
  uint64_t between_ns = 0;    ///< departs so much later than its turn comes
  uint64_t late_ns = 0;       ///< so much later than it could its completion is told
};

/// What makes the send queue of a port with a profile or with faults differ from a plain one: rules for requests,
/// depths counted in frames, pieces that become messages, sends that complete before they are delivered, and what
/// faults do to messages and completions. A plain queue has none. docs/profiles.md and docs/faults.md are the pages for
/// users. Under the lock for sending, as far as nothing else is said.
class SendQuirks {
 public:
  /// Whether a queue pair at the port needs quirks, of either half.
  static bool are_needed(const QueuePairCore& core);
  /// How many slots a send queue for so many requests needs, a power of two: sends that have completed early lie there
  /// still.
  static size_t slots(const QueuePairCore& core, uint32_t requests);

  /// Null where none are needed. Throws std::bad_alloc.
  static std::unique_ptr<SendQuirks> create(QueuePairCore& core);
  /// `completes_early`: some sends may complete before they are delivered, for which there are slots.
  SendQuirks(QueuePairCore& core, bool completes_early);
  bool completes_early() const { return completes_early_; }

  /// As SendQueue::append_list; a negated errno leaves the program's pointer alone. If `is_whole`, all or nothing.
  int append_list(SendQueue& queue, ibv_send_wr*& wr, bool is_whole) RINGBOLT_REQUIRES(send_half);
  /// As SendQueue::complete.
  void complete(SendQueue& queue, CompletionQueue& cq) RINGBOLT_REQUIRES(send_half, cq.lock);
  /// Whether the entry, whose turn it is, has to wait. May fail it, or lose it: then it is executed.
  enum class Turn : uint8_t { execute, wait, over };
  Turn take_turn(SendQueue& queue, uint32_t index) RINGBOLT_REQUIRES(send_half);
  /// The next send waits by itself: the time that it takes is not the peer's.
  bool is_next_held(SendQueue& queue) RINGBOLT_REQUIRES(send_half);
  /// The entry has a quirk, and its completion was told.
  bool is_told(uint32_t index) const RINGBOLT_REQUIRES(send_half) { return of_entry_[index & mask_].is_told; }
  void reset() RINGBOLT_REQUIRES(send_half);
  /// What RINGBOLT_SHUFFLE holds back leaves at once: nobody will have it leave later.
  void let_go(SendQueue& queue) RINGBOLT_REQUIRES(send_half);

  /// Before sends are given up: what has completed early leaves, but for what its lead or a fault still holds back.
  /// Waits for the peer until `deadline_ns` at most. Takes the lock itself.
  void deliver_told(SendQueue& queue, uint64_t deadline_ns);
  /// Before the end, which `ending` names: the same, and counts and tells what is lost. Takes the lock itself.
  void settle_told(SendQueue& queue, const char* ending, uint64_t deadline_ns);

 private:
  static bool may_complete_early(const QueuePairCore& core);

  // send_quirks.cpp: rules, frames, pieces
  int judge_call() RINGBOLT_REQUIRES(send_half);
  int check(SendQueue& queue, const ibv_send_wr& wr) const RINGBOLT_REQUIRES(send_half);
  int check_rules(const SendQueue& queue, const ibv_send_wr& wr) const RINGBOLT_REQUIRES(send_half);
  int check_frames(const SendQueue& queue, const ibv_send_wr& wr) const RINGBOLT_REQUIRES(send_half);
  uint32_t messages_of(const SendQueue& queue, const ibv_send_wr& wr) const;
  uint32_t open_sends() const RINGBOLT_REQUIRES(send_half);
  int check_list(SendQueue& queue, const ibv_send_wr* wr) RINGBOLT_REQUIRES(send_half);
  int append(SendQueue& queue, const ibv_send_wr& wr) RINGBOLT_REQUIRES(send_half);
  int append_pieces(SendQueue& queue, const ibv_send_wr& wr) RINGBOLT_REQUIRES(send_half);
  /// Takes back sends from `first` on that were appended by the post that is under way.
  void take_back(SendQueue& queue, uint32_t first, uint64_t line_free_ns) RINGBOLT_REQUIRES(send_half);
  void count_out(const SendEntry& entry) RINGBOLT_REQUIRES(send_half);  ///< its frames count no longer

  // send_faults.cpp: what faults do
  /// Decides what happens to the stored request. False: there is no memory for it, and nothing was done.
  bool decide(SendQueue& queue, uint32_t index) noexcept RINGBOLT_REQUIRES(send_half);
  Turn try_again(SendQueue& queue, uint32_t index, uint64_t now_ns) RINGBOLT_REQUIRES(send_half);
  /// Asks the faults about a send that is complete. False: its completion is late, and it is not time yet.
  bool is_due(SendQueue& queue, uint32_t index, ibv_wc_status& status) RINGBOLT_REQUIRES(send_half);
  /// False: there is no memory for quirks of entries.
  bool make_room(const SendQueue& queue) noexcept RINGBOLT_REQUIRES(send_half);
  /// Of the entry at `index`, made if it has none yet; after make_room().
  SendQuirk& quirk_of(SendQueue& queue, uint32_t index) RINGBOLT_REQUIRES(send_half);
  SendQuirk* known_quirk(SendQueue& queue, uint32_t index) RINGBOLT_REQUIRES(send_half);

  // send_shuffle.cpp: RINGBOLT_SHUFFLE
  int append_shuffled(SendQueue& queue, const ibv_send_wr& wr, const SendRequest& request) RINGBOLT_REQUIRES(send_half);
  int append_part(SendQueue& queue, const ibv_send_wr& wr, const SendRequest& request,
                  const SendShuffle::Course& course, uint32_t part, uint32_t first) RINGBOLT_REQUIRES(send_half);
  void meet_receives() RINGBOLT_REQUIRES(send_half);

  // early_sends.cpp: sends that complete before they are delivered
  uint64_t early_departure_ns(uint32_t length, uint64_t now_ns) RINGBOLT_REQUIRES(send_half);
  /// Copies what the stored request sends. False: it can't, or must not, be copied. Throws.
  bool stage(SendQueue& queue, uint32_t index) RINGBOLT_REQUIRES(send_half);
  void tell_early(SendQueue& queue, CompletionQueue& cq) RINGBOLT_REQUIRES(send_half, cq.lock);
  void drop_copy(const SendEntry& entry, uint32_t index) RINGBOLT_REQUIRES(send_half);
  bool may_yet_leave(SendQueue& queue, uint32_t index, uint64_t now_ns) RINGBOLT_REQUIRES(send_half);
  /// False: what of the told ones is not delivered now will not be soon. Takes the lock itself.
  bool push_told(SendQueue& queue);
  void count_undelivered(const SendEntry& entry) RINGBOLT_REQUIRES(send_half);
  void tell_undelivered(SendQueue& queue, const char* ending);

  QueuePairCore& core_;
  const bool has_rules_;                        ///< the port's profile takes something away
  const bool counts_frames_;                    ///< depths are numbers of 4 KiB frames
  const bool completes_early_;                  ///< some sends may
  const bool splits_pieces_;                    ///< each piece of a message is a message of its own
  const std::unique_ptr<SendShuffle> shuffle_;  ///< null but for RINGBOLT_SHUFFLE
  CallStream posted_ RINGBOLT_GUARDED_BY(send_half);
  uint32_t extra_parts_ RINGBOLT_GUARDED_BY(send_half) = 0;   // entries that are no request of their own
  bool is_rest_told_ RINGBOLT_GUARDED_BY(send_half) = false;  // a part has failed, and the parts behind it say no more
  bool meets_receives_ RINGBOLT_GUARDED_BY(send_half) = false;      // of the post that is under way
  uint32_t mask_ RINGBOLT_GUARDED_BY(send_half) = 0;                // of the two below
  std::vector<SendQuirk> of_entry_ RINGBOLT_GUARDED_BY(send_half);  // beside entries; none before the first
  std::vector<StagedBytes> staged_ RINGBOLT_GUARDED_BY(send_half);  // likewise
  size_t staged_bytes_ RINGBOLT_GUARDED_BY(send_half) = 0;
  uint32_t told_ RINGBOLT_GUARDED_BY(send_half) = 0;  // up to here completions were told; never behind those done
  uint32_t undelivered_ RINGBOLT_GUARDED_BY(send_half) = 0;   // of the told ones that are done
  uint64_t line_free_ns_ RINGBOLT_GUARDED_BY(send_half) = 0;  // when the cable has carried what is queued
  uint32_t frames_ RINGBOLT_GUARDED_BY(send_half) = 0;        // of unfinished sends
};

}  // namespace ringbolt::device
