#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "trace/layout.h"

namespace ringbolt::trace {

struct QueuePair {
  uint32_t qpn = 0;
  uint32_t peer_qpn = 0;
  uint8_t type = 0;
  uint8_t state = 0;
  bool is_gone = false;
  bool signals_all = false;
  uint32_t send_queue = 0;
  uint32_t receive_queue = 0;
  uint32_t shared_queue = 0;
  std::array<uint8_t, 16> gid{};
  std::array<uint8_t, 16> peer_gid{};
};

struct Place {
  std::string file;
  uint64_t offset = 0;
};

struct Words {
  uint32_t number = 0;  ///< as a record of Kind::words has it
  uint64_t ticks = 0;
  uint32_t qpn = 0;
  bool is_finding = false;
  std::string text;
};

/// What a recorder's file holds, by time.
/// A value: nothing of the file is referred to.
struct TraceFile {
  std::string program;
  std::string cluster;  ///< empty: outside clusters
  std::string node;
  uint32_t pid = 0;
  uint64_t process_start = 0;
  uint64_t boot = 0;
  bool has_counter = false;
  bool has_ended = false;         ///< in its own good time; else it runs, or was killed
  std::vector<Moment> moments{};  ///< by both clocks
  std::vector<Record> events{};
  std::vector<QueuePair> queue_pairs{};
  std::map<uint64_t, Place> places{};  ///< by address
  std::vector<Words> words{};
  /// Events that newer ones have taken the place of: so many at most, since some numbers are never used.
  uint64_t overwritten = 0;
};

/// `bytes` is a recorder's file, of any age and in any condition; `path` names it in errors. What is torn, overwritten
/// or nonsense is left out. Throws base::Error if it is no such file. Thread-safe.
TraceFile parse_trace(std::span<const std::byte> bytes, const std::string& path);

/// Adds the record that was given number `index` to `events`, if it is whole. It may be written to meanwhile.
/// `at`: sizeof(Record) bytes, of any alignment.
void read_record(const std::byte* at, uint64_t index, std::vector<Record>& events);

/// Of this start of the machine.
/// A hash of /proc/sys/kernel/random/boot_id (random(4)): times of CLOCK_MONOTONIC compare only within one start.
uint64_t boot_number();

}  // namespace ringbolt::trace
