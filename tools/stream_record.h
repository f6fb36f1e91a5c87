#pragma once

#include <map>
#include <string>
#include <vector>

#include "cluster/runtime_dir.h"

namespace ringbolt::tools {

/// Folders of ConfigFS that a cluster has made, by host, in the order in which they go away.
using StreamRecord = std::map<std::string, std::vector<std::string>>;

/// <runtime folder>/streams, where the records lie.
std::string stream_record_folder(const cluster::RuntimeDir& dir);

/// What is remembered of the cluster; empty: nothing. Throws base::Error if the file is damaged.
StreamRecord read_stream_record(const cluster::RuntimeDir& dir, const std::string& cluster);

/// Remembers this in place of what was; an empty record: forgets. Whole at any moment. Throws base::Error.
void write_stream_record(const cluster::RuntimeDir& dir, const std::string& cluster, const StreamRecord& record);

}  // namespace ringbolt::tools
