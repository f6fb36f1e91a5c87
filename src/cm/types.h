#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "wire/cm_message.h"
#include "wire/flow.h"
#include "wire/mad.h"

/// The connection manager's state machines: pure, without I/O, clock, thread or lock. Time comes in as an argument
/// (nanoseconds of any monotonic clock); datagrams to send and events come out as values.
namespace ringbolt::cm {

/// A communication id of ours: one connection, or one service lookup. 0: none. Not used again before its timewait is
/// over.
using Handle = uint32_t;

// Of a peer on another host, or one that is not known.
inline constexpr uint32_t kNoSlot = 0xffffffff;

/// The way of a datagram. `port` is the caller's number for a device. A value; how the port gets there is the
/// caller's business.
struct Path {
  uint32_t port = 0;
  wire::Address local{};
  wire::Address remote{};
  uint32_t flow_label = 0;
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 64;
  friend bool operator==(const Path&, const Path&) = default;
};

struct Outgoing {
  Path path;
  std::array<std::byte, wire::kMadBytes> bytes{};
};

struct Arrival {
  Path path;                     ///< the way back: local is the datagram's destination
  uint32_t peer_slot = kNoSlot;  ///< which process of this host sent it
  std::array<std::byte, wire::kMadBytes> bytes{};
};

/// A connection that its peer knows, with all that somebody else needs to end it in our place; or one that is none any
/// more. What another process must do once we are gone, it has to know before.
struct Standing {
  Handle handle = 0;
  bool stands = false;  ///< false: `handle` alone counts
  bool is_active = false;
  uint32_t remote_id = 0;
  uint32_t remote_qpn = 0;
  uint32_t peer_slot = kNoSlot;
  Path path{};
  friend bool operator==(const Standing&, const Standing&) = default;
};

/// `message` is valid for the kinds that say so; statuses are Linux': negative errno values, or the code of the
/// message.
struct Event {
  enum class Kind : uint8_t {
    request,        ///< passive: message is a CmReq
    response,       ///< active: message is a CmRep; ready() answers it
    established,    ///< passive: the peer is ready to use
    rejected,       ///< status is the reason, message a CmRej
    unreachable,    ///< status -ETIMEDOUT: no answer to all tries
    disconnected,   ///< the peer has ended it, or agreed to our end; status 0 or -ETIMEDOUT
    timewait_exit,  ///< the handle's number may be used again
    lookup,         ///< passive: message is a CmSidrReq
    lookup_answer,  ///< active: status 0 or a status of CmSidrRep, message a CmSidrRep
  };
  Kind kind = Kind::request;
  Handle handle = 0;
  uint64_t listener = 0;  ///< request, lookup: the cookie given to listen()
  int status = 0;
  Path path;  ///< request, lookup
  wire::CmMessage message;
};

/// Who takes requests. Addresses as in the request's IP header.
struct Listener {
  uint64_t cookie = 0;
  uint64_t service_id = 0;
  wire::Address address{};
  bool is_any = true;
  bool is_ipv4 = false;         ///< of the wildcard
  bool is_family_only = false;  ///< an IPv6 wildcard that does not take IPv4
  bool is_on_port = false;      ///< only what comes in at `port` (link-local addresses)
  uint32_t port = 0;
  uint32_t backlog = 1024;  ///< requests that nobody has fetched; beyond it requests are dropped
  uint32_t waiting = 0;     ///< of these
};

/// What the state machines must ask of the machine they run on. Called from within Engine's functions. Must not call
/// the engine. May be slow (system calls), as it is asked for each request that comes in.
class Host {
 public:
  virtual ~Host() = default;
  virtual uint64_t guid(uint32_t port) const = 0;
  /// GID 0 of the port: what REJ 12 offers instead.
  virtual wire::Address first_gid(uint32_t port) const = 0;
  virtual bool owns_gid(uint32_t port, const wire::Address& gid) const = 0;
  /// An address of this host that the port can stand for.
  virtual bool is_local(uint32_t port, const wire::Address& address) const = 0;
  /// Whether an answer from `local` to `remote` would leave through the port.
  virtual bool routes_back(uint32_t port, const wire::Address& local, const wire::Address& remote) const = 0;
};

}  // namespace ringbolt::cm
