#pragma once

#include <cerrno>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fabric/agreement.h"
#include "ringbolt/status.h"

namespace ringbolt::mesh {

/// What one rank knows of each rank of its mesh: which have failed, and how; which are silent and may yet be back; and
/// which want to leave. Under the mesh's lock. Not thread-safe. `rank` is below `n_ranks` in all functions.
class RankStates {
 public:
  explicit RankStates(uint32_t n_ranks) : is_leaving_(n_ranks) {}

  /// The rank has failed, for good; `is_certain`: its process has ended. True the first time, whose reason stays: what
  /// is said later follows from it, mostly.
  bool fail(uint32_t rank, const Status& why, bool is_certain) {
    // A set has one bit of 64 for a rank.
    if (is_certain && rank < fabric::kMaxAgreeingRanks) {
      ended_ |= fabric::set_of(rank);
    }
    return failed_.insert({rank, why}).second;
  }
  bool has_failed(uint32_t rank) const { return failed_.count(rank) > 0; }
  /// Grows only.
  const std::map<uint32_t, Status>& failed() const { return failed_; }
  /// Of these, whose processes have ended for certain.
  fabric::RankSet ended() const { return ended_; }

  /// Nothing is heard of it, and this is known: calls that end by their deadline meanwhile say so.
  void note_silent(uint32_t rank, const std::string& text) { silent_[rank] = text; }
  void note_back(uint32_t rank) { silent_.erase(rank); }
  /// A status with what is known of ranks that are silent, if what it is about took too long.
  /// Only ETIMEDOUT is explained: other codes name their cause themselves.
  Status explained(Status status) const {
    if (status.code == ETIMEDOUT) {
      for (const auto& [rank, text] : silent_) {
        status.text += "; " + text;
      }
    }
    return status;
  }

  void note_leaving(uint32_t rank) { is_leaving_[rank] = true; }
  /// Whether no rank but `self` needs this one any more: each wants to leave or has failed. Also when rank 0 has
  /// failed: nobody can say that it leaves then.
  bool may_leave(uint32_t self) const {
    bool may = true;
    for (uint32_t rank = 0; rank < is_leaving_.size() && (self == 0 || !has_failed(0)); ++rank) {
      may = may && (rank == self || is_leaving_[rank] || has_failed(rank));
    }
    return may;
  }

 private:
  std::map<uint32_t, Status> failed_;
  fabric::RankSet ended_ = 0;
  std::map<uint32_t, std::string> silent_;
  std::vector<bool> is_leaving_;  // [rank]
};

}  // namespace ringbolt::mesh
