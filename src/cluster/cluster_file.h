#pragma once

#include <string>
#include <string_view>

#include "cluster/model.h"
#include "cluster/parsed.h"

namespace ringbolt::cluster {

inline constexpr uint32_t kClusterFileVersion = 1;

/// Reads a cluster file (JSON; docs/cluster.md has the format). Any bytes are safe to pass: size, nesting and every
/// number are bounded. Refuses unknown and repeated fields, names used twice, a cable to a node or port that is not
/// there, a port with two cables. The message names the place ("cables[2].between[0]: ...") and quotes the text at
/// most in part. A file without "name" gives an empty one, for the caller to fill. Thread-safe. The text may be
/// kMaxClusterFileBytes long. Allocates in proportion to the text; throws nothing but std::bad_alloc.
Parsed<Cluster> parse_cluster(std::string_view text);

/// Writes the text that parse_cluster() reads. Thread-safe.
std::string emit_cluster(const Cluster& cluster);

/// parse_cluster() of the file at `path`. Throws base::Error that names the file, the place and the remedy. Blocks
/// for the file system only. Thread-safe. EINVAL for a text that is refused, else the errno of open or read, EFBIG
/// beyond kMaxClusterFileBytes.
Cluster load_cluster(const std::string& path);

}  // namespace ringbolt::cluster
