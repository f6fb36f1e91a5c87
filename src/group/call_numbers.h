#pragma once

#include <cstdint>
#include <vector>

#include "engine/sequence.h"
#include "group/call.h"
#include "group/early_chunks.h"

namespace ringbolt::group {

/// The numbers of one group's calls: which the next ones of this rank have, how far each other rank has said that its
/// own have ended, and what it has been told of this one's. By these a rank knows whether a call may begin: another one
/// may be kMostAhead calls behind it at most, or messages behind their receiver, since it keeps what comes early. All
/// numbers wrap at 2^32 and are compared by the sign of their difference. `peer` is a rank of the group. A state
/// machine: it only counts, and calls nobody. Not thread-safe.
class CallNumbers {
 public:
  /// Part of the protocol: all ranks count by the same number.
  static constexpr uint32_t kMostAhead = EarlyChunks::kMostAhead;
  /// A quarter of kMostAhead, so that mostly nobody has to wait for the word.
  static constexpr uint32_t kCallsPerWord = 16;
  static constexpr uint32_t kNobody = UINT32_MAX;

  CallNumbers(uint32_t rank, uint32_t n_ranks)
      : rank_(rank),
        next_send_(n_ranks),
        next_receive_(n_ranks),
        finished_(n_ranks),
        taken_by_(n_ranks),
        told_taken_(n_ranks),
        told_finished_(n_ranks) {}

  /// That of the next collective here; take_collective() gives it away.
  uint32_t next_collective() const { return next_call_; }
  uint32_t take_collective() { return next_call_++; }
  CallId take_message(bool is_send, uint32_t peer) {
    return is_send ? CallId{true, rank_, peer, next_send_[peer]++} : CallId{true, peer, rank_, next_receive_[peer]++};
  }
  /// The number that the next call of its kind will have here.
  uint32_t next_of(const CallId& id) const {
    return !id.is_message ? next_call_ : id.source == rank_ ? next_send_[id.destination] : next_receive_[id.source];
  }
  bool is_past(const CallId& id) const { return engine::is_before(id.number, next_of(id)); }
  /// Whether nobody who keeps to the rules could have come to it yet.
  bool is_too_far(const CallId& id) const {
    return static_cast<int32_t>(id.number - next_of(id)) >= static_cast<int32_t>(kMostAhead);
  }

  /// A rank that is so many calls behind that this call must wait; kNobody if there is none.
  uint32_t rank_behind(const CallId& id) const;
  /// The same of a collective, in a fraction of the time: false also of some that may begin.
  bool may_begin(uint32_t number) const { return engine::is_before(number, may_go_before_); }

  /// The peer has said that all its collectives before `number` have ended; of messages: those from this rank to it.
  /// Numbers only grow: an older word that comes late changes nothing.
  void hear_finished(uint32_t peer, bool is_of_messages, uint32_t number) {
    uint32_t& known = is_of_messages ? taken_by_[peer] : finished_[peer];
    if (engine::is_before(known, number)) {
      known = number;
      note_finished();
    }
  }
  /// A chunk of collective `number` says it, too; it is noted as seldom as a word would come.
  void hear_ended_before(uint32_t peer, uint32_t number) {
    uint32_t& known = finished_[peer];
    if (static_cast<int32_t>(number - known) >= static_cast<int32_t>(kCallsPerWord)) {
      known = number;
      note_finished();
    }
  }

  /// A chunk has told the peer that all collectives before `number` have ended here: so that no word repeats it.
  void note_told(uint32_t peer, uint32_t number) { told_finished_[peer] = number; }
  /// Calls `tell(peer, is_of_messages, number)` for each peer that is to be told anew what has ended here. `active`:
  /// (pointers to) the calls that have not. Whether all calls that have ended could be counted: some may be newer than
  /// one that has not.
  template <class Calls, class Tell>
  bool tell_finished(const Calls& active, Tell tell) {
    uint32_t finished = next_call_;
    uint32_t n_active = 0;
    std::vector<uint32_t>& taken = received_;
    taken = next_receive_;
    for (const auto& call : active) {
      const CallId& id = call->id();
      if (id.is_message && id.destination != rank_) {
        continue;
      }
      n_active += id.phase == Phase::counting ? 0U : 1U;  // its number is counted already
      uint32_t& first = id.is_message ? taken[id.source] : finished;
      if (engine::is_before(id.number, first)) {
        first = id.number;
      }
    }
    uint32_t n_held_up = next_call_ - finished;  // and those that are active
    for (uint32_t peer = 0; peer < finished_.size(); ++peer) {
      n_held_up += next_receive_[peer] - taken[peer];
      if (peer == rank_) {
        continue;
      }
      // Unsigned, so right across the wrap.
      if (finished - told_finished_[peer] >= kCallsPerWord) {
        told_finished_[peer] = finished;
        tell(peer, false, finished);
      }
      if (taken[peer] - told_taken_[peer] >= kCallsPerWord) {
        told_taken_[peer] = taken[peer];
        tell(peer, true, taken[peer]);
      }
    }
    return n_held_up == n_active;
  }

 private:
  void note_finished();

  uint32_t rank_;
  uint32_t next_call_ = 0;
  uint32_t may_go_before_ = kMostAhead;  // the number of a collective: what follows from finished_
  std::vector<uint32_t> next_send_;      // [rank]
  std::vector<uint32_t> next_receive_;   // [rank]
  // Calls that each rank has ended, as far as it has said; messages to it, and from it, likewise.
  std::vector<uint32_t> finished_;
  std::vector<uint32_t> taken_by_;
  std::vector<uint32_t> told_taken_;     // to each rank, of messages from it
  std::vector<uint32_t> told_finished_;  // to each rank, by words and by chunks
  std::vector<uint32_t> received_;       // of tell_finished(), kept for its memory
};

}  // namespace ringbolt::group
