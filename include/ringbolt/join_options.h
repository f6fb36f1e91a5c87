#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace ringbolt {

enum class Checksums : uint8_t {
  off,
  on,     ///< CRC-32C of every chunk that crosses a cable
  every,  ///< also of what is read in memory that two ranks share
};

/// Gives `mine` to all ranks and takes what each of them gives: `all` has room for `length_bytes` of every rank, in the
/// order of ranks. May throw: Group::join() passes it on.
using Exchange = std::function<void(const void* mine, void* all, size_t length_bytes)>;

/// How ranks meet, and what their group is like. What is not said here, the environment says (docs/environment.md);
/// where both do, this counts. Messages name the variable that would have said the same.
struct JoinOptions {
  /// Variables that stand for the process's environment. Empty: the process's.
  std::map<std::string, std::string> environment = {};
  /// A call that takes longer has failed, if it says nothing of its own.
  uint64_t timeout_ms = 300'000;
  /// Which verbs library: "auto", "system", "soft" or a path. Empty: RINGBOLT_VERBS, else "auto".
  std::string verbs = {};
  /// Off: as Checksums::off.
  bool has_crc = true;
  /// Cables are measured when ranks meet (20 ms at most), and schedules chosen by that. Off: RINGBOLT_MEASURE=off; then
  /// all cables count as alike but for the rates that their devices name.
  bool measures_cables = true;

  /// Off: the process's environment is not read, and `environment` counts even if it is empty.
  bool reads_process_environment = true;
  /// This process's rank, from 0, and how many there are: both or neither. RINGBOLT_RANK, RINGBOLT_WORLD_SIZE.
  std::optional<uint32_t> rank = {};
  std::optional<uint32_t> size = {};
  /// Where rank 0 is: an address or a name, and a port. RINGBOLT_COORDINATOR.
  std::string host = {};
  uint16_t port = 0;
  /// At which address of its machine rank 0 listens. RINGBOLT_BIND.
  std::string bind_address = {};
  /// Groups of different names refuse each other. RINGBOLT_GROUP.
  std::string group = {};
  /// What all ranks know and nobody else; never sent. RINGBOLT_SECRET.
  std::string secret = {};
  /// For the whole of joining; behind an exchange of the program's own bring-up has at least 30 s, or as much as this if
  /// it is less. 0: RINGBOLT_JOIN_TIMEOUT_MS, else 60 s.
  uint64_t join_timeout_ms = 0;
  /// RINGBOLT_CRC.
  std::optional<Checksums> checksums = {};
  /// Ranks that can tell each other something already, by MPI or a store, need no port that they agree on: rank 0 takes
  /// a free one and tells it, and a secret if there is none. Only ranks on several machines need `host` then, at rank
  /// 0. Called once by join(), and again by rejoin(), on all ranks. Off if empty.
  Exchange exchange = {};
};

using GroupOptions = JoinOptions;  // its name before there was more than the environment

}  // namespace ringbolt
