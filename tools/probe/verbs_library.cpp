#include "probe/verbs_library.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "failure.h"
#include "node_environment.h"

namespace ringbolt::tools {

std::string verbs_path(const std::string& wanted) {
  if (wanted == "ours") {
    return library_folder() + "/libibverbs.so.1";
  }
  if (wanted == "system") {
    for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"}) {
      std::string path = std::string(folder) + "/libibverbs.so.1";
      if (::access(path.c_str(), R_OK) == 0) {
        return path;
      }
    }
    throw UsageError("the system has no libibverbs.so.1; install rdma-core, or give --verbs a path");
  }
  if (::access(wanted.c_str(), R_OK) != 0) {
    throw UsageError("there is no verbs library " + wanted + "; --verbs takes ours, system or a path");
  }
  // A name without a slash would be looked up on the library path.
  return std::filesystem::absolute(wanted).string();
}

verbs::Library open_verbs(const std::string& path) {
  const verbs::Library library = verbs::Library::open(path);
  const verbs::Calls& calls = library.calls();
  std::string missing;
  for (const auto& [is_there, name] : {std::pair{calls.query_device != nullptr, "ibv_query_device"},
                                       {calls.create_comp_channel != nullptr, "ibv_create_comp_channel"},
                                       {calls.destroy_comp_channel != nullptr, "ibv_destroy_comp_channel"},
                                       {calls.get_cq_event != nullptr, "ibv_get_cq_event"},
                                       {calls.ack_cq_events != nullptr, "ibv_ack_cq_events"},
                                       {calls.create_ah != nullptr, "ibv_create_ah"},
                                       {calls.destroy_ah != nullptr, "ibv_destroy_ah"},
                                       {calls.wc_status_str != nullptr, "ibv_wc_status_str"}}) {
    if (!is_there) {
      missing += (missing.empty() ? "" : ", ") + std::string(name);
    }
  }
  if (!missing.empty()) {
    throw base::Error(ENOSYS, "find functions", path, "it lacks " + missing + ", which this command measures with");
  }
  return library;
}

}  // namespace ringbolt::tools
