#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <unordered_map>

#include "sanitizer/kept_memory.h"
#include "sanitizer/request.h"

namespace ringbolt::sanitizer {

/// Memory of ours in place of the program's, for requests of any protection domain: each has registered memory of its
/// own, made when it is first asked for. Under the lock of Shadow.
class KeptMemories {
 public:
  /// The calls must be good for the life of this.
  explicit KeptMemories(const KeptMemory::Calls& calls) : calls_(calls) {}

  /// Puts memory of ours in place of the request's pieces, in `list` as well, and leaves its bytes as they are. False:
  /// there is none for all of them, and nothing has changed.
  /// `list`: the copy that the device gets (PostedList), by Piece::segment. May register memory, which is a call of
  /// the device; false also for a request without pieces.
  bool take(Request& request, ibv_sge* list);
  /// Its own, and what was lent to it, of a request that is over. No effect where it has none.
  /// The device must have done with the request.
  static void give_back(Request& request);
  /// `borrower` sends from `piece` of `owner`'s, which stays until both have given it back, whoever is over first.
  /// Throws std::bad_alloc.
  static void lend(Request& owner, const KeptMemory::Piece& piece, Request& borrower);

  /// What there is of the domain; null: nothing.
  /// Good until remove().
  const KeptMemory* find(const ibv_pd* pd) const;
  /// None of it is in use.
  void remove(const ibv_pd* pd) { of_domains_.erase(pd); }
  /// In a child after fork: it is registered at a device that is the parent's, and is left to it.
  void abandon();

 private:
  const KeptMemory::Calls calls_;
  std::unordered_map<const ibv_pd*, std::unique_ptr<KeptMemory>> of_domains_;
};

}  // namespace ringbolt::sanitizer
