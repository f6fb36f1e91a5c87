// What a hostile process writes into its region table: an initiator that looks keys up there, and follows them into
// that process' shareable memory, stays inside that memory.

#include <unistd.h>

#include <cstring>

#include "base/assert.h"
#include "base/unique_fd.h"
#include "input.h"
#include "link/arena.h"
#include "link/region_table.h"
#include "link/shared_segment.h"

namespace {

using namespace ringbolt;

constexpr uint32_t kArenaId = link::kMaxArenas + 3;
constexpr uint64_t kArenaBytes = 8192;

/// A table and an arena as a peer would hand them over, mapped here once.
struct HostileProcess {
  link::SharedSegment table;
  link::SharedSegment arena;
  link::RegionTableView view;
  link::PeerArenas arenas;
  std::byte* arena_base = nullptr;

  HostileProcess() {
    table = *link::SharedSegment::create("fuzz table", link::kRegionTableBytes);
    arena = *link::SharedSegment::create("fuzz arena", kArenaBytes);
    link::RegionTableHeader header{link::kRegionTableMagic, 1, 0};
    std::memcpy(table.data(), &header, sizeof header);
    view = *link::RegionTableView::open(table);
    const base::UniqueFd memory(dup(arena.descriptor()));
    RINGBOLT_ASSERT(arenas.add(kArenaId, kArenaBytes, memory) == 0);
    arena_base = arenas.find(kArenaId, 0, kArenaBytes);
    RINGBOLT_ASSERT(arena_base != nullptr);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static HostileProcess process;
  fuzz::Input input(data, size);
  const auto key = input.take<uint32_t>();
  const auto address = input.take<uint64_t>();
  const auto length = input.take<uint64_t>();
  const uint32_t index = (key >> 8U) & (link::kRegionCount - 1);
  auto* entry = reinterpret_cast<link::RegionEntry*>(process.table.data() + sizeof(link::RegionTableHeader)) + index;
  entry->first = input.take<uint64_t>();
  entry->length = input.take<uint64_t>();
  entry->arena_offset = input.take<uint64_t>();
  entry->arena_id = link::kMaxArenas + input.take<uint8_t>() % 8;
  entry->key = input.take<uint8_t>() % 8 == 0 ? input.take<uint32_t>() : key;
  link::Region region;
  if (process.view.find(key, region) && region.holds(address, length)) {
    RINGBOLT_ASSERT(address - region.first <= region.length);
    const std::byte* place =
        process.arenas.find(region.arena_id, region.arena_offset + (address - region.first), length);
    RINGBOLT_ASSERT(place == nullptr || (place >= process.arena_base && length <= kArenaBytes &&
                                         static_cast<uint64_t>(place - process.arena_base) <= kArenaBytes - length));
  }
  entry->key = 0;
  // Other headers are no tables.
  if (size >= sizeof(link::RegionTableHeader)) {
    link::SharedSegment other = *link::SharedSegment::create("fuzz header", link::kRegionTableBytes);
    std::memcpy(other.data(), data, sizeof(link::RegionTableHeader));
    const auto view = link::RegionTableView::open(other);
    link::RegionTableHeader header;
    std::memcpy(&header, data, sizeof header);
    RINGBOLT_ASSERT(!view || header.magic == link::kRegionTableMagic);
  }
  return 0;
}
