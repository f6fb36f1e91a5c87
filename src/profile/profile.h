#pragma once

#include <cstdint>
#include <string>

/// Whose limits and oddities a device takes on. Pure values; numbers are those of the verbs' headers, which this layer
/// does not see. Sources and certainty of each: docs/profiles.md.
namespace ringbolt::profile {

// Bits of Limits::qp_types, not numbers of ibv_qp_type.
enum QpTypes : uint8_t { kRc = 1, kUc = 2, kUd = 4 };

// Bits of Limits::operations, not numbers of ibv_wr_opcode.
enum Operations : uint8_t {
  kSend = 1,
  kSendImmediate = 2,
  kWrite = 4,
  kWriteImmediate = 8,
  kRead = 16,
  kAtomic = 32,
  kInvalidateOrBind = 64,
};

/// What there is of each kind. 0: as much as the device has by itself.
struct Limits {
  uint8_t qp_types = kRc | kUc | kUd;
  uint8_t operations = 0x7f;
  uint32_t advertised_qp = 0;  ///< as ibv_query_device says
  uint32_t usable_qp = 0;      ///< of one device, all processes together; as the following three
  uint32_t pd = 0;
  uint32_t cq = 0;
  uint32_t mr = 0;
  uint32_t qp_wr = 0;
  uint32_t cqe = 0;
  uint32_t sge = 0;
  uint32_t posted_receive_sge = 0;  ///< where posting takes fewer than the queue pair was granted
  uint32_t read_atomic = 0;
  uint32_t message_bytes = 0;
  uint64_t advertised_mr_bytes = 0;  ///< not enforced, as on the real thing
  bool has_inline = true;
  bool has_srq = true;
  bool has_windows = true;
  bool counts_frames = false;  ///< queue depths are 4 KiB frames; see frames.h
  friend bool operator==(const Limits&, const Limits&) = default;
};

enum class GidLayout : uint8_t {
  plain,  ///< link-local, IPv4, then others
  apple,  ///< link-local, IPv4 at 1, a second link-local
  late,   ///< the same with nothing at 1 and IPv4 at 2
  empty,  ///< what a bridged port has
  mlx5,   ///< each twice, for RoCE v1 and v2: IPv4 at 2 and 3
};

/// The port as ibv_query_port and the device list show it. Width and speed are encoded as active_width and active_speed
/// of ibv_query_port(3).
struct Look {
  uint8_t width = 2;  ///< as the architecture encodes it: 2 is 4 lanes, 4 is 8
  uint8_t speed = 0;  ///< of a lane, as encoded; 0: from the port's nominal rate
  bool has_lid = false;
  bool has_rising_guids = false;  ///< those of a machine's ports differ in the first byte: e0, e1, e2
  int transport = 0;              ///< enum ibv_transport_type, or a number beyond it
  uint32_t gid_table_length = 8;
  GidLayout gids = GidLayout::plain;
  bool has_devices = true;  ///< programs find them
};

enum class ReceiveFrom : uint8_t { init, rtr, rts };

/// What becomes of data received into a region that crosses a 4 GiB boundary.
enum class Wrap4Gib : uint8_t {
  off,
  warn,     ///< it arrives where it belongs; registering says what other machines do
  corrupt,  ///< what belongs beyond the boundary lands 4 GiB too low
};

/// What becomes of a UC SEND that meets no posted receive.
enum class NoReceive : uint8_t {
  wait,  ///< it stays with its sender until there is one; over a network it is lost
  drop,  ///< it is lost
  park,  ///< it waits at the receiver, as far as there is room
};

/// What tells a connected RC queue pair that its peer's process died.
enum class PeerDeath : uint8_t {
  requests,    ///< its work requests, which fail, as on a card
  then_fatal,  ///< the same, and when the last one has failed IBV_EVENT_QP_FATAL
  fatal,       ///< IBV_EVENT_QP_FATAL at once, and its work requests
};

/// Where sources conflict, or one machine is odder than another: a knob each. knobs.cpp has their names and values.
struct Knobs {
  bool has_darwin_errno = false;
  bool refuses_type_at_modify = false;  ///< not when the queue pair is made
  ReceiveFrom receive_from = ReceiveFrom::init;
  bool overruns_silently = false;
  uint32_t short_grant_frames = 0;  ///< posting takes so many frames fewer than were granted
  bool leaks_until_reboot = false;
  bool refuses_late_regions = false;  ///< receives into regions made after the queue pair's RTR
  bool wants_aligned_regions = false;
  bool writes_into_stream = false;  ///< a WRITE arrives as a message
  Wrap4Gib wrap_4_gib = Wrap4Gib::off;
  bool wants_remote_access = false;   ///< of each region
  bool wants_mapped_regions = false;  ///< not on the heap, not on a stack
  bool leaks_after_error = false;     ///< regions stay once a queue pair was destroyed in ERR
  bool refuses_empty_sends = false;
  bool splits_pieces = false;  ///< each piece of a message is a message of its own
  NoReceive no_receive = NoReceive::wait;
  uint32_t park_slots = 64;         ///< messages that wait at the receiver at most
  uint32_t park_bytes = 1U << 20U;  ///< and their bytes
  PeerDeath peer_death = PeerDeath::requests;
  bool has_channels = true;
  bool zero_rkey = false;
  bool empty_table_is_einval = false;
  bool checks_port_at_pd = false;  ///< no protection domain while the port is down
  bool completes_early = false;    ///< a send completes when it has left the queue, delivered or not
  uint64_t early_lead_ns = 0;      ///< and is delivered so much later at least
  bool holds_line_rate = false;    ///< messages leave no faster than the cable's nominal rate
  friend bool operator==(const Knobs&, const Knobs&) = default;
};

/// The GUID that programs see of the port with this index, in host order. `port_index` is the port's place among the
/// machine's ports, from 0. From port 32 on the first byte wraps.
constexpr uint64_t shown_guid(const Look& look, uint64_t guid, uint32_t port_index) {
  constexpr uint64_t kFirst = 0xe0;
  constexpr uint64_t kSamePart = 0x00ffffffffffff00;
  constexpr uint64_t kLastByte = 0x05;
  return look.has_rising_guids ? ((kFirst + port_index) & 0xffU) << 56U | (guid & kSamePart) | kLastByte : guid;
}

/// The LID that programs see: of a port that has one never 0, and most likely another one for each port of a cluster.
constexpr uint16_t shown_lid(const Look& look, uint64_t guid) {
  // IBTA: unicast LIDs are 0x0001 to 0xbfff.
  constexpr uint16_t kUnicastLids = 0xbfff;
  return look.has_lid ? static_cast<uint16_t>(1 + (guid ^ guid >> 16U ^ guid >> 32U) % kUnicastLids) : uint16_t{0};
}

struct Profile {
  std::string name = "roce";
  Limits limits;
  Look look;
  Knobs knobs;

  /// Whether queue pairs have to look at it at all. Asked when one is made, so that posting costs nothing where no
  /// rule can apply.
  bool takes_away() const { return limits != Limits{} || knobs != Knobs{}; }
  bool allows(uint8_t operation) const { return (limits.operations & operation) != 0; }
};

/// The limit if there is one, else what the device has by itself.
template <class Number>
Number limited(Number limit, Number own) {
  return limit == 0 ? own : limit;
}

}  // namespace ringbolt::profile
