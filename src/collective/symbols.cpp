#include "collective/symbols.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"

namespace ringbolt::collective {
namespace {

/// A random number of each rank, always the same (splitmix64: Steele, Lea and Flood 2014).
uint64_t number_of(uint32_t rank) {
  uint64_t mixed = (uint64_t{rank} + 1) * 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return mixed ^ mixed >> 31;
}

}  // namespace

Origins::Origins(const Origin& one, bool is_listed)
    : count_(1), first_(one), last_rank_(one.rank), ranks_(number_of(one.rank)), offsets_(ranks_ * one.offset) {
  if (is_listed) {
    list_.push_back(one);
  }
}

void Origins::shift(uint64_t bytes) {
  first_.offset += bytes;
  offsets_ += ranks_ * bytes;
  for (Origin& origin : list_) {
    origin.offset += bytes;
  }
}

void Origins::append(const Origins& next) {
  if (count_ == 0) {
    *this = next;
    return;
  }
  is_ascending_ = is_ascending_ && next.is_ascending_ && last_rank_ < next.first_.rank;
  count_ += next.count_;
  last_rank_ = next.last_rank_;
  ranks_ += next.ranks_;
  offsets_ += next.offsets_;
  list_.insert(list_.end(), next.list_.begin(), next.list_.end());
}

bool Origins::is_same_set(const Origins& other) const {
  std::vector<Origin> list = list_;
  std::vector<Origin> others = other.list_;
  std::ranges::sort(list);
  std::ranges::sort(others);
  return count_ == other.count_ && ranks_ == other.ranks_ && offsets_ == other.offsets_ && list == others;
}

std::string Origins::text() const {
  if (list_.empty()) {
    return fmt::format("{} inputs, the first {}@{}", count_, first_.rank, first_.offset);
  }
  std::string text;
  for (const Origin& origin : list_) {
    text += fmt::format("{}{}@{}", text.empty() ? "" : " ", origin.rank, origin.offset);
  }
  return text;
}

Symbol part_of(const Symbol& symbol, uint64_t skip, uint64_t bytes) {
  RINGBOLT_ASSERT(skip + bytes <= symbol.bytes);
  Symbol part = symbol;
  part.bytes = bytes;
  part.origins.shift(skip);
  return part;
}

std::optional<Symbols> sum_of(const std::vector<Symbols>& rows) {
  if (rows.size() == 1) {
    return rows.front();
  }
  Symbols sums;
  std::vector<size_t> at(rows.size());
  std::vector<uint64_t> skip(rows.size());
  while (at[0] < rows[0].size()) {
    uint64_t bytes = UINT64_MAX;
    for (size_t row = 0; row < rows.size(); ++row) {
      RINGBOLT_ASSERT(at[row] < rows[row].size());
      bytes = std::min(bytes, rows[row][at[row]].bytes - skip[row]);
    }
    Symbol sum;
    for (size_t row = 0; row < rows.size(); ++row) {
      const Symbol part = part_of(rows[row][at[row]], skip[row], bytes);
      if (part.is_finished) {
        return std::nullopt;
      }
      sum.bytes = bytes;
      sum.is_left_fold = sum.is_left_fold && part.is_left_fold && (row == 0 || part.origins.count() == 1);
      sum.origins.append(part.origins);
      skip[row] += bytes;
      if (skip[row] == rows[row][at[row]].bytes) {
        skip[row] = 0;
        ++at[row];
      }
    }
    sums.push_back(std::move(sum));
  }
  return sums;
}

void SymbolicMemory::write(uint64_t offset, const Symbols& symbols) {
  uint64_t bytes = 0;
  for (const Symbol& symbol : symbols) {
    bytes += symbol.bytes;
  }
  const uint64_t end = offset + bytes;
  auto next = symbols_.lower_bound(offset);
  if (next != symbols_.begin()) {
    const auto before = std::prev(next);
    const uint64_t before_end = before->first + before->second.bytes;
    if (before_end > end) {
      symbols_.emplace(end, part_of(before->second, end - before->first, before_end - end));
    }
    if (before_end > offset) {
      before->second.bytes = offset - before->first;
    }
    next = symbols_.lower_bound(offset);
  }
  while (next != symbols_.end() && next->first < end) {
    const auto& [start, old] = *next;
    if (start + old.bytes > end) {
      symbols_.emplace(end, part_of(old, end - start, start + old.bytes - end));
    }
    next = symbols_.erase(next);
  }
  for (const Symbol& symbol : symbols) {
    if (symbol.bytes > 0) {
      symbols_[offset] = symbol;
      offset += symbol.bytes;
    }
  }
}

std::optional<Symbols> SymbolicMemory::read(uint64_t offset, uint64_t bytes, uint64_t* hole) const {
  Symbols found;
  const uint64_t end = offset + bytes;
  auto next = symbols_.upper_bound(offset);
  if (next != symbols_.begin()) {
    --next;
  }
  for (; offset < end; ++next) {
    if (next == symbols_.end() || next->first > offset || next->first + next->second.bytes <= offset) {
      *hole = offset;
      return std::nullopt;
    }
    const uint64_t skip = offset - next->first;
    const uint64_t here = std::min(next->second.bytes - skip, end - offset);
    found.push_back(part_of(next->second, skip, here));
    offset += here;
  }
  return found;
}

}  // namespace ringbolt::collective
