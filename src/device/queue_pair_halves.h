#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "device/call_stream.h"
#include "device/counting.h"
#include "device/current_receive.h"
#include "device/network.h"
#include "device/parking.h"
#include "device/receive_ring.h"
#include "device/send_request.h"
#include "device/vigil.h"

namespace ringbolt::device {

/// What the send lock of a queue pair guards, and nothing else does. Not thread-safe.
struct SendHalf {
  explicit SendHalf(uint32_t number) : posted(fault::Call::post_send, number) {}

  std::vector<SendEntry> entries;
  std::vector<SendRequest> requests;
  std::vector<ibv_sge> request_pieces;
  std::vector<std::byte> request_inline;
  CallStream posted;                ///< as faults of calls count them
  bool has_failed_send = false;     ///< nothing after it may begin
  bool is_destroyed = false;        ///< its domain and context may be gone
  std::vector<SendFate> fates;      ///< beside entries; none before the first
  std::vector<StagedBytes> staged;  ///< likewise
  size_t staged_bytes = 0;
  uint32_t told = 0;               ///< up to here completions were told; never behind those that are done
  uint32_t undelivered = 0;        ///< of the told ones that are done
  uint64_t line_free_ns = 0;       ///< when the cable has carried what is queued
  uint32_t frames = 0;             ///< of unfinished sends, where depths are counted in frames
  uint32_t answers_pending = 0;    ///< operations that the peer executes
  uint32_t progress_mark = 0;      ///< what the timers last saw of the count of consumed slots and done sends
  uint64_t progress_since_ns = 0;  ///< since when; 0: not looked yet
  Vigil vigil;
  uint64_t not_ready_since_ns = 0;  ///< since when the receiver has no receive posted
  uint64_t next_ring_ns = 0;
  uint64_t ring_pause_ns = 0;
  size_t purge_at = 0;  ///< datagrams: how many connections there are when those that are over are looked for
  std::unique_ptr<CountingCell> peer_counts;  ///< of a peer at another port in shared memory
  std::optional<Network::Lease> out;          ///< built, not yet sent: there between two calls if the socket is full
  uint32_t next_datagram_psn = 0;
};

/// Where a UC message goes for which no receive is posted.
enum class Bypass : uint8_t { none, parked, dropped };

/// The same of its receive lock. Not thread-safe.
struct ReceiveHalf {
  ReceiveHalf(uint32_t number, ReceiveRing receives, Parking::Bounds park)
      : posted(fault::Call::post_recv, number), ring(std::move(receives)), parking(park) {}

  CallStream posted;
  ReceiveRing ring;
  CurrentReceive current;
  uint32_t frames = 0;        ///< of posted receives, where depths are counted in frames
  uint64_t posted_count = 0;  ///< likewise
  uint64_t taken_count = 0;
  std::set<uint64_t> overrun;  ///< those beyond the depth, by number
  Parking parking;
  Bypass bypass = Bypass::none;  ///< of the message that is coming in
  uint32_t bypassed_bytes = 0;   ///< of it, so far
  uint64_t regions_at_rtr = 0;
  ibv_wc_status fault = IBV_WC_SUCCESS;  ///< on a network: what ended the current receive
  uint64_t next_tick_ns = 0;             ///< coalescing; 0: not now
  bool has_tick_traffic = false;         ///< something came at the last tick
  bool has_flushed_last = false;
  bool is_established = false;        ///< IBV_EVENT_COMM_EST was announced
  std::optional<Network::Lease> out;  ///< answers, likewise
  bool has_unsealed_out = false;      ///< some of these were built before the seal was agreed upon
};

}  // namespace ringbolt::device
