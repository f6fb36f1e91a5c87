#include "device/live_gids.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/lock_guard.h"
#include "device/gid_table.h"

namespace ringbolt::device {
namespace {

bool is_same(const ibv_gid& a, const ibv_gid& b) { return std::memcmp(a.raw, b.raw, sizeof a.raw) == 0; }

bool is_same(const std::vector<ibv_gid>& a, const std::vector<ibv_gid>& b) {
  return std::ranges::equal(a, b, [](const ibv_gid& one, const ibv_gid& other) { return is_same(one, other); });
}

bool holds(const std::vector<ibv_gid>& gids, const ibv_gid& gid) {
  return std::ranges::any_of(gids, [&](const ibv_gid& one) { return is_same(one, gid); });
}

/// The first free slot whose index is `part` modulo `parts`; as many further slots as there are parts if there is none.
std::optional<size_t> free_slot(std::vector<ibv_gid>& table, size_t part, size_t parts, size_t capacity) {
  for (size_t i = part; i < table.size(); i += parts) {
    if (is_zero(table[i])) {
      return i;
    }
  }
  const size_t grown = (table.size() + parts - 1) / parts * parts + parts;
  if (grown > capacity) {
    return std::nullopt;
  }
  table.resize(grown);
  return grown - parts + part;
}

}  // namespace

std::vector<ibv_gid> renewed(profile::GidLayout layout, const std::vector<ibv_gid>& table,
                             const std::vector<ibv_gid>& found, size_t capacity) {
  std::vector<ibv_gid> next = table;
  if (table.empty()) {
    return next;
  }
  for (ibv_gid& slot : next) {
    slot = holds(found, slot) ? slot : ibv_gid{};
  }
  const size_t parts = layout == profile::GidLayout::mlx5 ? 2 : 1;  // versions 1 and 2 of RoCE
  for (const ibv_gid& gid : found) {
    for (size_t part = 0; part < parts && !holds(table, gid); ++part) {
      if (const auto slot = free_slot(next, part, parts, capacity)) {
        next[*slot] = gid;
      }
    }
  }
  return next;
}

LiveGids::LiveGids(GidTables listed) : there_(std::move(listed)), now_(std::make_shared<const GidTables>(there_)) {}

std::shared_ptr<const GidTables> LiveGids::now() const {
  const base::LockGuard guard(mutex_);
  return now_;
}

uint32_t LiveGids::generation() const {
  const base::LockGuard guard(mutex_);
  return generation_;
}

void LiveGids::find(profile::GidLayout layout, const std::vector<ibv_gid>& found, size_t capacity) {
  const base::LockGuard guard(mutex_);
  there_ = {found, renewed(layout, there_.shown, found, capacity)};
  settle();
}

void LiveGids::hide(std::optional<uint64_t> index) {
  const base::LockGuard guard(mutex_);
  if (index != hidden_index_) {
    hidden_index_ = index;
    settle();
  }
}

void LiveGids::settle() {
  GidTables next = there_;
  if (hidden_index_ && *hidden_index_ < next.shown.size()) {
    const ibv_gid away = next.shown[*hidden_index_];
    for (auto* table : {&next.known, &next.shown}) {
      std::ranges::replace_if(
          *table, [&](const ibv_gid& one) { return is_same(one, away); }, ibv_gid{});
    }
  }
  if (!is_same(next.known, now_->known) || !is_same(next.shown, now_->shown)) {
    now_ = std::make_shared<const GidTables>(std::move(next));
    ++generation_;
  }
}

}  // namespace ringbolt::device
