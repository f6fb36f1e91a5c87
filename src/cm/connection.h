#pragma once

#include <array>
#include <cstdint>

#include "cm/types.h"

namespace ringbolt::cm {

/// Names as in the architecture's state diagram (IBTA volume 1, 12.9.7).
enum class State : uint8_t {
  idle,
  req_sent,
  mra_req_received,
  rep_received,
  req_received,
  rep_sent,
  mra_rep_received,
  established,
  dreq_sent,
  dreq_received,
  timewait,
  lookup_sent,      ///< SIDR, active
  lookup_received,  ///< SIDR, passive
  lookup_answered,  ///< SIDR, passive: the answer is kept for repeated questions
};

/// One connection or lookup as its state machine remembers it. A plain record; Engine alone changes it. Owned by
/// Engine, in a map whose nodes do not move: references stay good until it is erased.
struct Connection {
  Handle id = 0;
  State state = State::idle;
  bool is_active = false;
  bool is_orphan = false;     ///< its user is gone: no events any more
  bool is_accepted = false;   ///< the user has answered; before, the passive one hears of nothing
  bool wants_end = false;     ///< passive, before the peer is ready: its user has asked for the end already
  bool has_told_end = false;  ///< disconnected was raised
  bool stands = false;        ///< was told as a Standing that does
  // The peer's communication id; of a lookup, its request id. Not known (0) until the peer has said something.
  uint32_t remote_id = 0;
  // Node GUID as REQ and REP tell it: with an id or a queue pair number it names a connection across hosts.
  uint64_t remote_guid = 0;
  uint32_t local_qpn = 0;
  uint32_t remote_qpn = 0;
  // Which process of this host; kNoSlot: on another, or not known yet.
  uint32_t peer_slot = kNoSlot;
  uint64_t transaction_id = 0;
  uint64_t service_id = 0;
  uint64_t listener = 0;
  bool is_waiting = false;  ///< counts in its listener's backlog
  Path path;

  // 4.096 us times 2^18 is about 1 s.
  uint8_t lifetime = 18;  ///< packet lifetime of the path, as code
  uint64_t wait_ns = 0;   ///< between tries
  uint64_t early_ns = 0;  ///< from the first try to the next early one; from wait_ns on there are none
  uint8_t max_retries = 15;
  uint8_t tries_left = 0;
  // Of the engine's clock (the `now_ns` of its callers); never when nothing is to be repeated.
  uint64_t deadline_ns = UINT64_MAX;
  std::array<std::byte, wire::kMadBytes> last{};  ///< what is sent again: REQ, REP, RTU, DREQ, DREP, SIDR_*
};

constexpr bool is_lookup(State state) {
  return state == State::lookup_sent || state == State::lookup_received || state == State::lookup_answered;
}

/// It is known to the peer under its ids and queue pair numbers.
constexpr bool is_live(State state) { return state != State::idle && state != State::timewait && !is_lookup(state); }

}  // namespace ringbolt::cm
