#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <span>
#include <vector>

namespace ringbolt::sanitizer {

constexpr int kMostPieces = 1024;  // of one request: more is a number that nobody meant

/// The list of requests of one post as the device gets it, which may be changed: copies of the program's requests and
/// of their lists of pieces, linked in the same order. Wr: ibv_send_wr or ibv_recv_wr. The program's own are only read.
/// Not thread-safe.
template <class Wr>
class PostedList {
 public:
  /// `first`: of a list that ends, linked by `next`; not null. It must stay until this is gone. Throws
  /// std::bad_alloc.
  explicit PostedList(Wr* first);
  PostedList(const PostedList&) = delete;
  PostedList& operator=(const PostedList&) = delete;

  /// Good as long as this; pieces of a sound list may be changed in place.
  std::span<Wr> requests() { return copies_; }
  /// What to post.
  Wr* first() { return copies_.data(); }
  /// The place in the list of one of ours that the device has refused.
  /// The device must point into the list that it was given, as the verbs have it of bad_wr.
  size_t place_of(const Wr* refused) const { return static_cast<size_t>(refused - copies_.data()); }
  /// The program's request of that place.
  Wr* original(size_t place) const { return originals_[place]; }

 private:
  /// Others are left as they are, for the device to judge.
  static bool has_sound_list(const Wr& one) {
    return one.num_sge > 0 && one.num_sge <= kMostPieces && one.sg_list != nullptr;
  }

  std::vector<Wr> copies_;
  std::vector<Wr*> originals_;
  std::vector<ibv_sge> pieces_;
};

template <class Wr>
PostedList<Wr>::PostedList(Wr* first) {
  size_t total = 0;
  for (Wr* at = first; at != nullptr; at = at->next) {
    // const is dropped by the verbs alone: nothing is written there.
    originals_.push_back(at);
    copies_.push_back(*at);
    total += has_sound_list(*at) ? static_cast<size_t>(at->num_sge) : 0;
  }
  pieces_.reserve(total);  // which stay where they are
  for (size_t i = 0; i < copies_.size(); ++i) {
    Wr& one = copies_[i];
    one.next = i + 1 < copies_.size() ? &copies_[i + 1] : nullptr;
    if (has_sound_list(one)) {
      const auto* const pieces = one.sg_list;
      one.sg_list = pieces_.data() + pieces_.size();
      pieces_.insert(pieces_.end(), pieces, pieces + one.num_sge);
    }
  }
}

}  // namespace ringbolt::sanitizer
