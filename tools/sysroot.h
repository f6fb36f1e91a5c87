#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/ip_address.h"
#include "cluster/model.h"
#include "cluster/node_file.h"
#include "cluster/runtime_dir.h"
#include "fault/rule.h"
#include "profile/profile.h"

namespace ringbolt::tools {

/// What the synthetic /sys and /dev say of one device with one port.
struct SysrootDevice {
  std::string name;
  uint64_t guid = 0;  ///< host order
  uint32_t ipv4 = 0;  ///< host order
  uint32_t speed_gbps = 0;
  std::string netdev = "lo";                          ///< the interface that it lies on
  std::vector<cluster::IpAddress> addresses = {};     ///< of its interface; empty: those of an emulated port
  profile::Profile like = {};                         ///< lays the GID table out
  std::optional<std::vector<size_t>> gid_order = {};  ///< which entry of that table is at each index, by a fault
  std::string counter_path = {};                      ///< where its port counts, cluster/counter_page.h
};

/// The devices of a node, in the order in which its programs see them, as faults make them look. `spec` is node_spec()
/// of the model.
std::vector<SysrootDevice> sysroot_devices(const cluster::RuntimeDir& dir, const cluster::Cluster& model,
                                           const cluster::NodeSpec& spec, const fault::Plan& looks);

/// The default device, which every process sees outside clusters.
SysrootDevice local_device(const cluster::RuntimeDir& dir, const profile::Profile& like);

/// Makes the tree that libringbolt-paths.so shows programs in place of /sys/class/infiniband,
/// /sys/class/infiniband_verbs and /dev/infiniband: `path`/sys/class/... and `path`/dev/infiniband/... (see
/// docs/command.md), with all ports up. Counters are empty there, `path`/counters/D leads to their file. Built beside
/// `path`, then renamed: nobody sees it half-made. Returns false if it was there already. Throws base::Error.
bool make_sysroot(const std::string& path, const std::vector<SysrootDevice>& devices);

/// Rewrites what the tree says of a port's state, after its cable was cut or healed. No tree, no work.
/// Throws base::Error.
void set_sysroot_state(const std::string& path, const std::string& device, bool is_up);

}  // namespace ringbolt::tools
