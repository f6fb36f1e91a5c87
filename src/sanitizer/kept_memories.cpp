#include "sanitizer/kept_memories.h"

#include <utility>

namespace ringbolt::sanitizer {

bool KeptMemories::take(Request& request, ibv_sge* list) {
  if (request.pieces.empty()) {
    return false;
  }
  auto& kept = of_domains_[request.pd];
  if (kept == nullptr) {
    kept = std::make_unique<KeptMemory>(request.pd, calls_);
  }
  request.kept = kept.get();
  for (Piece& one : request.pieces) {
    one.kept = kept->take(one.length);
    if (one.kept.memory == nullptr) {
      // All or nothing: a device must not write half to the program and half to us.
      give_back(request);
      return false;
    }
  }
  for (const Piece& one : request.pieces) {
    list[one.segment] = {reinterpret_cast<uintptr_t>(one.kept.memory), one.length, one.kept.lkey};
  }
  return true;
}

void KeptMemories::give_back(Request& request) {
  for (Piece& one : request.pieces) {
    if (one.kept.memory != nullptr) {
      request.kept->give_back(std::exchange(one.kept, {}));
    }
  }
  request.kept = nullptr;
  for (const KeptMemory::Piece& one : request.borrowed) {
    request.lender->give_back(one);
  }
  request.borrowed.clear();
  request.lender = nullptr;
}

void KeptMemories::lend(Request& owner, const KeptMemory::Piece& piece, Request& borrower) {
  // Both are of one queue pair, and so of one domain: the lender is always the same.
  borrower.borrowed.reserve(borrower.borrowed.size() + 1);
  owner.kept->share(piece);
  borrower.lender = owner.kept;
  borrower.borrowed.push_back(piece);
}

const KeptMemory* KeptMemories::find(const ibv_pd* pd) const {
  const auto known = of_domains_.find(pd);
  return known == of_domains_.end() ? nullptr : known->second.get();
}

void KeptMemories::abandon() {
  for (auto& [pd, kept] : of_domains_) {
    // Leaked on purpose: its destructor would deregister what is the parent's.
    static_cast<void>(kept.release());
  }
  of_domains_.clear();
}

}  // namespace ringbolt::sanitizer
