#include "probe/verbs_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "failure.h"
#include "node_environment.h"

namespace ringbolt::tools {
namespace {

template <class Function>
void find(void* library, const std::string& path, const char* name, Function& function) {
  void* found = ::dlsym(library, name);
  if (found == nullptr) {
    throw base::Error(ENOSYS, std::string("find ") + name, path, "is it a verbs library?");
  }
  static_assert(sizeof found == sizeof function);
  std::memcpy(&function, &found, sizeof function);
}

}  // namespace

std::string VerbsLibrary::path_of(const std::string& wanted) {
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

VerbsLibrary VerbsLibrary::load(const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw base::Error(ELIBACC, "dlopen", ::dlerror());
  }
  VerbsLibrary verbs;
  find(library, path, "ibv_get_device_list", verbs.get_device_list);
  find(library, path, "ibv_free_device_list", verbs.free_device_list);
  find(library, path, "ibv_get_device_name", verbs.get_device_name);
  find(library, path, "ibv_open_device", verbs.open_device);
  find(library, path, "ibv_query_device", verbs.query_device);
  find(library, path, "ibv_close_device", verbs.close_device);
  find(library, path, "ibv_alloc_pd", verbs.alloc_pd);
  find(library, path, "ibv_dealloc_pd", verbs.dealloc_pd);
  find(library, path, "ibv_reg_mr", verbs.reg_mr);
  find(library, path, "ibv_dereg_mr", verbs.dereg_mr);
  find(library, path, "ibv_create_comp_channel", verbs.create_comp_channel);
  find(library, path, "ibv_destroy_comp_channel", verbs.destroy_comp_channel);
  find(library, path, "ibv_get_cq_event", verbs.get_cq_event);
  find(library, path, "ibv_ack_cq_events", verbs.ack_cq_events);
  find(library, path, "ibv_create_ah", verbs.create_ah);
  find(library, path, "ibv_destroy_ah", verbs.destroy_ah);
  find(library, path, "ibv_create_cq", verbs.create_cq);
  find(library, path, "ibv_destroy_cq", verbs.destroy_cq);
  find(library, path, "ibv_create_qp", verbs.create_qp);
  find(library, path, "ibv_modify_qp", verbs.modify_qp);
  find(library, path, "ibv_destroy_qp", verbs.destroy_qp);
  find(library, path, "ibv_query_port", verbs.query_port);
  find(library, path, "ibv_query_gid", verbs.query_gid);
  find(library, path, "ibv_wc_status_str", verbs.wc_status_str);
  return verbs;
}

}  // namespace ringbolt::tools
