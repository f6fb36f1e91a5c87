#include "stream_record.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cluster/cabling.h"
#include "cluster/read_file.h"
#include "thunderbolt_look.h"

namespace ringbolt::tools {
namespace {

constexpr size_t kMostStreamRecordBytes = size_t{1} << 20U;

std::string path_of(const cluster::RuntimeDir& dir, const std::string& cluster) {
  return stream_record_folder(dir) + "/" + cluster + ".json";
}

/// What goes into commands again is checked again.
StreamRecord checked(StreamRecord record, const std::string& path) {
  for (const auto& [host, folders] : record) {
    if (!cluster::is_host(host) || !std::ranges::all_of(folders, is_plain_path)) {
      throw base::Error(EINVAL, "holds no hosts and folders", path, "remove it, and the streams by hand");
    }
  }
  return record;
}

}  // namespace

std::string stream_record_folder(const cluster::RuntimeDir& dir) { return dir.root() + "/streams"; }

StreamRecord read_stream_record(const cluster::RuntimeDir& dir, const std::string& cluster) {
  const std::string path = path_of(dir, cluster);
  if (::access(path.c_str(), F_OK) != 0) {
    if (errno != ENOENT) {  // the record may be there, and is all that knows of the streams
      throw base::Error(errno, "look for", path);
    }
    return {};
  }
  const nlohmann::json json = nlohmann::json::parse(cluster::read_file(path, kMostStreamRecordBytes), nullptr, false);
  try {
    return checked(json.get<StreamRecord>(), path);
  } catch (const nlohmann::json::exception&) {
    throw base::Error(EINVAL, "is no record of streams", path, "remove it, and the streams by hand");
  }
}

void write_stream_record(const cluster::RuntimeDir& dir, const std::string& cluster, const StreamRecord& record) {
  const std::string path = path_of(dir, cluster);
  if (record.empty()) {
    ::unlink(path.c_str());
    ::rmdir(stream_record_folder(dir).c_str());  // stays while others are in it
    return;
  }
  cluster::make_private_dir(stream_record_folder(dir));
  const std::string fresh = path + ".new";
  ::unlink(fresh.c_str());  // of somebody who was interrupted
  cluster::write_new_file(fresh, nlohmann::json(record).dump(1) + "\n");
  if (::rename(fresh.c_str(), path.c_str()) != 0) {
    throw base::Error(errno, "rename", fresh);
  }
}

}  // namespace ringbolt::tools
