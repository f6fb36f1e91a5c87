#include "membership/members.h"

#include <algorithm>
#include <deque>

namespace ringbolt::membership {

Members::News Members::hear(const Announcement& announcement) {
  const MemberId member = announcement.contact.member;
  if (member == self_ || is_gone(member)) {
    return News::none;
  }
  const auto known = announcements_.find(member);
  if (known == announcements_.end()) {
    if (announcements_.size() >= kMostMembers) {
      return News::none;
    }
    announcements_.emplace(member, announcement);
    // Of a beat of 0 the first one is news.
    heard_[member] = {};
    return News::first;
  }
  // Signed difference: right where numbers wrap around.
  if (static_cast<int32_t>(announcement.version - known->second.version) <= 0) {
    return News::none;
  }
  known->second = announcement;
  return News::changed;
}

bool Members::hear_beat(MemberId member, uint32_t beat) {
  const auto known = heard_.find(member);
  if (known == heard_.end() || static_cast<int32_t>(beat - known->second.beat) <= 0) {
    return false;
  }
  known->second = {beat, 0};
  return true;
}

void Members::touch(MemberId member) {
  if (const auto known = heard_.find(member); known != heard_.end()) {
    known->second.silent = 0;
  }
}

bool Members::end(MemberId member) {
  announcements_.erase(member);
  heard_.erase(member);
  // Nobody can make this member believe that it is gone itself.
  if (member == self_ || !gone_.insert(member).second) {
    return false;
  }
  in_order_of_end_.push_back(member);
  // Anybody in the group may say that anybody has gone: that must not take all memory.
  if (in_order_of_end_.size() > kMostGone) {
    gone_.erase(in_order_of_end_.front());
    in_order_of_end_.pop_front();
  }
  return true;
}

bool Members::is_heard(MemberId member, uint32_t ticks) const {
  const auto known = heard_.find(member);
  return known != heard_.end() && known->second.silent < ticks;
}

std::vector<MemberId> Members::tick() {
  std::vector<MemberId> silent;
  for (auto& [member, heard] : heard_) {
    // No overflow: who is silent for too long is ended by the caller in the same tick.
    if (++heard.silent > most_silent_) {
      silent.push_back(member);
    }
  }
  return silent;
}

const Announcement* Members::find(MemberId member) const {
  const auto known = announcements_.find(member);
  return known == announcements_.end() ? nullptr : &known->second;
}

bool Members::is_adjacent(MemberId a, MemberId b) const {
  const Announcement* const known = find(a);
  return known != nullptr && std::ranges::find(known->adjacent, b) != known->adjacent.end();
}

std::optional<MemberId> Members::next_hop(MemberId to, const std::set<MemberId>& neighbours) const {
  if (neighbours.contains(to)) {
    return to;
  }
  // Breadth first from here, each with the neighbour by which it is reached.
  std::map<MemberId, MemberId> by;
  std::deque<MemberId> reached;
  for (const MemberId neighbour : neighbours) {
    by.emplace(neighbour, neighbour);
    reached.push_back(neighbour);
  }
  for (; !reached.empty(); reached.pop_front()) {
    const Announcement* const known = find(reached.front());
    if (known == nullptr) {
      continue;
    }
    for (const MemberId next : known->adjacent) {
      if (next == self_ || is_gone(next) || !by.emplace(next, by.at(reached.front())).second) {
        continue;
      }
      if (next == to) {
        return by.at(next);
      }
      reached.push_back(next);
    }
  }
  return std::nullopt;
}

}  // namespace ringbolt::membership
