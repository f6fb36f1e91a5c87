#include "fabric/heartbeat.h"

#include <cerrno>

#include "base/assert.h"
#include "base/little_endian.h"

namespace ringbolt::fabric {
namespace {

// The layout of docs/formats/liveness.md, little-endian.
constexpr uint8_t kVersion = 1;
constexpr size_t kVersionAt = 0;
constexpr size_t kRanksAt = 1;
constexpr size_t kRankAt = 2;
constexpr size_t kZeroAt = 3;
constexpr size_t kEpochAt = 4;
constexpr size_t kIncarnationAt = 8;
constexpr size_t kHostsAt = 16;
constexpr size_t kReservedAt = 24;
constexpr size_t kCountersAt = kHeartbeatFixedBytes;

static_assert(kReservedAt + 8 == kCountersAt && kMaxHeartbeatBytes == 544);

}  // namespace

size_t emit(const Heartbeat& heartbeat, std::span<std::byte> out) {
  const size_t length = heartbeat_bytes(heartbeat.n_ranks);
  RINGBOLT_ASSERT(heartbeat.n_ranks <= kMaxWatchedRanks && heartbeat.rank < heartbeat.n_ranks && out.size() >= length);
  base::put_le(out, kVersionAt, kVersion);
  base::put_le(out, kRanksAt, static_cast<uint8_t>(heartbeat.n_ranks));
  base::put_le(out, kRankAt, static_cast<uint8_t>(heartbeat.rank));
  base::put_le<uint8_t>(out, kZeroAt, 0);
  base::put_le(out, kEpochAt, heartbeat.epoch);
  base::put_le(out, kIncarnationAt, heartbeat.incarnation);
  base::put_le(out, kHostsAt, heartbeat.hosts);
  base::put_le<uint64_t>(out, kReservedAt, 0);
  for (uint32_t rank = 0; rank < heartbeat.n_ranks; ++rank) {
    base::put_le(out, kCountersAt + 8 * size_t{rank}, heartbeat.counters[rank]);
  }
  return length;
}

base::Result<Heartbeat> parse_heartbeat(std::span<const std::byte> in) {
  if (in.size() < kHeartbeatFixedBytes) {
    return base::fail(EBADMSG);
  }
  // Before anything else is judged: a later version may look otherwise behind this byte.
  if (base::get_le<uint8_t>(in, kVersionAt) != kVersion) {
    return base::fail(EPROTONOSUPPORT);
  }
  Heartbeat heartbeat;
  heartbeat.n_ranks = base::get_le<uint8_t>(in, kRanksAt);
  heartbeat.rank = base::get_le<uint8_t>(in, kRankAt);
  heartbeat.epoch = base::get_le<uint32_t>(in, kEpochAt);
  heartbeat.incarnation = base::get_le<uint64_t>(in, kIncarnationAt);
  heartbeat.hosts = base::get_le<uint64_t>(in, kHostsAt);
  // No rank 0 of 0: rank < n_ranks implies one at least.
  const bool is_in_range = heartbeat.n_ranks <= kMaxWatchedRanks && heartbeat.rank < heartbeat.n_ranks &&
                           in.size() == heartbeat_bytes(heartbeat.n_ranks);
  // What is reserved is refused, so that a later version may give it a meaning.
  const bool is_zero = base::get_le<uint8_t>(in, kZeroAt) == 0 && base::get_le<uint64_t>(in, kReservedAt) == 0;
  if (!is_in_range || !is_zero || heartbeat.incarnation == 0) {
    return base::fail(EBADMSG);
  }
  for (uint32_t rank = 0; rank < heartbeat.n_ranks; ++rank) {
    heartbeat.counters[rank] = base::get_le<uint64_t>(in, kCountersAt + 8 * size_t{rank});
  }
  return heartbeat;
}

}  // namespace ringbolt::fabric
