#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "membership/announcement.h"

namespace ringbolt::membership {

/// Who takes part, as one member knows it: the newest announcement of each, how long each has been silent, and over
/// whom each is reached. Time is counted in ticks of its owner: a member that has itself stood still accuses nobody.
/// Pure. Not thread-safe. References and pointers to announcements stay good until the next hear() or end() of that
/// member.
class Members {
 public:
  /// Late words come within seconds of an end; so many members do not end in that time.
  static constexpr size_t kMostGone = 16 * kMostMembers;

  /// `most_silent`: ticks after which a member that says nothing is gone.
  Members(MemberId self, uint32_t most_silent) : self_(self), most_silent_(most_silent) {}

  enum class News : uint8_t { none, first, changed };
  /// `none`: an older one, the same, of oneself, of one that is gone, or of one too many.
  News hear(const Announcement& announcement);
  /// Beats count up. Whether this one is news, which others should hear as well.
  bool hear_beat(MemberId member, uint32_t beat);
  /// Something has come from it itself.
  void touch(MemberId member);
  /// It is gone for good. Whether that is news. Remembered until kMostGone others have gone since, so that no late word
  /// brings it back.
  bool end(MemberId member);
  bool is_gone(MemberId member) const { return gone_.contains(member); }
  /// Whether it has been heard of within the last `ticks`.
  bool is_heard(MemberId member, uint32_t ticks) const;

  /// Another tick has passed: who has been silent for too long by now. Each stays until end().
  std::vector<MemberId> tick();

  const Announcement* find(MemberId member) const;
  const std::map<MemberId, Announcement>& all() const { return announcements_; }
  /// Whether `a` has said that it hears `b` itself.
  bool is_adjacent(MemberId a, MemberId b) const;
  /// Which of `neighbours` is the first on a shortest way to `to`; nothing: there is no way.
  std::optional<MemberId> next_hop(MemberId to, const std::set<MemberId>& neighbours) const;

 private:
  struct Heard {
    uint32_t beat = 0;
    uint32_t silent = 0;  ///< ticks
  };

  const MemberId self_;
  const uint32_t most_silent_;
  std::map<MemberId, Announcement> announcements_;
  std::map<MemberId, Heard> heard_;  ///< of those announced
  std::set<MemberId> gone_;
  std::deque<MemberId> in_order_of_end_;  ///< the same
};

}  // namespace ringbolt::membership
