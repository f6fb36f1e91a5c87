#include "collective/symbols.h"

#include <algorithm>

#include "base/assert.h"

namespace ringbolt::collective {

Symbol part_of(const Symbol& symbol, uint64_t skip, uint64_t bytes) {
  RINGBOLT_ASSERT(skip + bytes <= symbol.bytes);
  Symbol part = symbol;
  part.bytes = bytes;
  for (Origin& origin : part.origins) {
    origin.offset += skip;
  }
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
      sum.is_left_fold = sum.is_left_fold && part.is_left_fold && (row == 0 || part.origins.size() == 1);
      sum.origins.insert(sum.origins.end(), part.origins.begin(), part.origins.end());
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
