#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "cluster/control_page.h"
#include "device/call_stream.h"
#include "device/faults.h"
#include "device/first_seen.h"
#include "device/ledger.h"
#include "device/live_gids.h"
#include "device/verb_faults.h"
#include "profile/profile.h"
#include "profile/rules.h"

/// The ports that this process sees: those of its node in an emulated cluster, or the one default device.
namespace ringbolt::device {

/// What all ports of this process share. Thread-safe.
struct Fabric {
  std::string slots_directory;
  cluster::ControlPage control;        ///< not open: no cluster, and no cable can be cut
  bool has_streams = false;            ///< some of its ports are at streams, see docs/streams.md
  bool has_interfaces = false;         ///< some of its ports are on network interfaces
  bool loops_through_network = false;  ///< a port on the network speaks RoCEv2 even to itself
  std::string cluster;                 ///< its name; empty: none
  FaultSource faults;
  mutable VerbFaults verb_faults{control, faults};
  mutable std::atomic<uint64_t> told_rules{0};  ///< which violations of the profile were told: one bit each
};

/// Ports at streams are numbered from here on, where no interface of the kernel is.
inline constexpr uint32_t kFirstStreamInterface = 0x8000'0000U;

/// How many objects of a port this process has, how many bytes it ever registered there, and how its stream or
/// interface is.
struct LiveObjects {
  std::array<std::atomic<uint32_t>, profile::kCountedKinds> counts{};
  std::atomic<uint64_t> registered_bytes{0};
  std::atomic<bool> stream_is_deserted{false};  ///< its peer was there and is gone
  std::atomic<bool> interface_is_down{false};   ///< or without a carrier, or gone
  std::atomic<uint32_t> queue_pairs_made{0};
  std::atomic<uint32_t> completion_queues_made{0};
  base::Mutex registering;
  CallStream registrations RINGBOLT_GUARDED_BY(registering){fault::Call::reg_mr, 0};
  FirstSeen overlong_messages;  ///< beyond what the port takes
  FirstSeen misfit_packets;     ///< of a path MTU that its interface, or the way to the peer, has no more
};

/// One device with its one port. A value; thread-safe.
struct Port {
  std::string name;    ///< "rdma_en2"
  uint32_t index = 0;  ///< place in the device list
  uint64_t guid = 0;   ///< host order
  profile::Profile profile;
  /// When the ports were listed: IPv6 link-local, IPv4-mapped, then what other addresses the interface had.
  std::vector<ibv_gid> known_gids;
  std::shared_ptr<LiveGids> live_gids = std::make_shared<LiveGids>(GidTables{});
  std::vector<ibv_gid> peer_gids;  ///< as known_gids, at the other end of the cable; none for the default device
  uint32_t cable = 0;
  uint32_t speed_gbps = 0;
  uint32_t netdev_index = 0;         ///< the network interface that carries it; 0: shared memory alone
  std::vector<std::string> streams;  ///< that carry it instead, as link::make_stream_source() reads them
  uint64_t stream_outage_ns = 0;     ///< how long an interruption of them may last before RC counts it as silence
  bool is_overlay = false;           ///< the stream leads to the node's agent, and by it to all nodes
  ibv_mtu mtu = IBV_MTU_4096;
  std::shared_ptr<Fabric> fabric;
  std::shared_ptr<Ledger> ledger;  ///< of the objects that the profile limits
  std::shared_ptr<LiveObjects> live = std::make_shared<LiveObjects>();
  uint32_t peer_node = 0;         ///< in a cluster, see Fabric::cluster
  std::string counter_path;       ///< where it counts, cluster/counter_page.h; empty: nowhere
  std::string peer_counter_path;  ///< where its peer does, if both are in shared memory: who copies counts for both

  /// Its addresses now, and the GID table: the same as the profile lays them out.
  std::shared_ptr<const GidTables> addresses() const { return live_gids->now(); }
  /// Takes up what faults make of them and, where the interface `has_news`, its addresses and whether it is up.
  void look_at_addresses(bool has_news) const;

  /// What programs are told.
  bool is_up() const {
    return carries() && !live->stream_is_deserted.load(std::memory_order_relaxed) &&
           !live->interface_is_down.load(std::memory_order_relaxed);
  }
  /// Its cable is neither cut nor flaps. A stream without a peer still holds what came before, and keeps what RC sends.
  bool carries() const {
    return (is_overlay || !fabric->control.is_open() || fabric->control.cable_up(cable)) &&
           (!fabric->verb_faults.has(fault::Subject::state) || !is_pulled());
  }
  /// A fault has the machine at one of its ends do nothing, or its cable carry nothing: the port looks as if nothing
  /// were wrong.
  bool is_frozen() const;
  /// What becomes of programs while a fault has the cable pulled; nothing: it has not.
  std::optional<fault::Unplug> unplugged() const;
  /// It is this machine: its programs see nothing happen either.
  bool is_halted() const;
  /// The cable that is plugged in, which is another one if a fault crossed it.
  uint32_t plug() const;
  /// It speaks RoCEv2 to everything but itself.
  bool is_on_network() const { return netdev_index != 0; }
  /// Frames to `gid` leave this host's memory.
  bool is_remote(const ibv_gid& gid) const { return is_on_network() && (fabric->loops_through_network || !owns(gid)); }
  /// The other end of the cable, or, as with any NIC, the port itself. Through a network: whatever the kernel has a
  /// route to through the port's interface, from an address of the same family.
  bool reaches(const ibv_gid& gid) const;
  bool owns(const ibv_gid& gid) const;
  /// Place of `gid` in a table of GIDs; their number when it is not there, as the zero GID never is.
  static size_t index_of(const std::vector<ibv_gid>& gids, const ibv_gid& gid);

  /// Those at the end of the cable that is plugged in.
  std::vector<ibv_gid> plugged_gids() const;

  /// Tells once in a process, on standard error, what a program did that the profile's machine refuses, why it does,
  /// and the fix; the error number that the program gets.
  int refuse(profile::Rule rule, int error, const std::string& what) const;
  /// The same where nothing is refused but something will go wrong.
  void warn(profile::Rule rule, const std::string& what) const { refuse(rule, 0, what); }
  /// Tells once in a process what queue pairs have noted. Without spin locks.
  void tell_seen() const;
  /// Counts an object. Refused with the profile's error number when there are as many as it, or a fault, allows.
  base::Result<Claim> claim(profile::Counted kind) const;

 private:
  bool is_pulled() const;                        ///< and the port shows it
  std::optional<uint64_t> address_away() const;  ///< by a fault: its index in the GID table
};

/// Reads the environment (RINGBOLT_CLUSTER and RINGBOLT_NODE, or RINGBOLT_NETDEVS and RINGBOLT_LOOPBACK, or
/// RINGBOLT_STREAMS; RINGBOLT_LIKE, RINGBOLT_RUNTIME_DIR, RINGBOLT_FAULTS). Throws base::Error that names the cluster,
/// the interface or the variable.
std::vector<std::shared_ptr<const Port>> list_ports();

}  // namespace ringbolt::device
