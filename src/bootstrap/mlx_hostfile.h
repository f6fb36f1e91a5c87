#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/parsed.h"
#include "bootstrap/config.h"
#include "bootstrap/jaccl_devices.h"

namespace ringbolt::bootstrap {

/// MLX's launcher lets rank 0 of a JACCL group listen here.
inline constexpr uint16_t kMlxCoordinatorPort = 32323;

/// One rank of a hostfile.
struct MlxHost {
  std::string ssh;
  std::vector<std::string> ips = {};
  std::optional<std::vector<std::vector<std::string>>> rdma = {};  ///< as a row of JacclDevices
  friend bool operator==(const MlxHost&, const MlxHost&) = default;
};

/// The file that mlx.launch takes: version 1 is the bare list of hosts, version 2 an object with that list. A host's
/// rank is its place in the list.
struct MlxHostfile {
  bool is_object = true;               ///< version 2
  std::string backend = {};            ///< "jaccl", "jaccl-ring", "ring", ...; empty: not said
  std::vector<std::string> envs = {};  ///< "NAME=VALUE"
  std::vector<MlxHost> hosts = {};

  /// hosts[0].ips[0] at kMlxCoordinatorPort, if it is there.
  std::optional<HostPort> coordinator() const;
  /// The rdma rows, if all hosts have one.
  std::optional<JacclDevices> devices() const;
  friend bool operator==(const MlxHostfile&, const MlxHostfile&) = default;
};

/// Any bytes are safe. Refuses by place ("hosts[2].rdma[1]"): unknown or repeated fields, wrong types, rdma rows that
/// are no table that parse_jaccl_devices() takes or that only some hosts have, and their absence where the backend is
/// JACCL's. As MLX writes them, an empty row is none, and an empty backend is one that is not said.
base::Parsed<MlxHostfile> parse_mlx_hostfile(std::string_view text);
/// In the version that is_object says; an object has all of its three fields. What it writes parses to the same.
std::string to_text(const MlxHostfile& file);

/// The file that MLX_HOSTFILE names for the TCP ring: a row of addresses for each rank.
struct MlxRingfile {
  std::vector<std::vector<HostPort>> ranks;
  friend bool operator==(const MlxRingfile&, const MlxRingfile&) = default;
};

/// [["10.0.0.1:32323"], ["10.0.0.2:32324"]]. Any bytes are safe.
base::Parsed<MlxRingfile> parse_mlx_ringfile(std::string_view text);
std::string to_text(const MlxRingfile& file);

}  // namespace ringbolt::bootstrap
