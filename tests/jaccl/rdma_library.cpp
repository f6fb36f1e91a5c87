#include "rdma_library.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace ringbolt::jaccl {
namespace {

template <typename Function>
void resolve(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) {
    throw std::runtime_error(std::string("the library lacks ") + name);
  }
}

}  // namespace

RdmaLibrary load_rdma_library(const char* file) {
  // Never closed, as in the original: objects outlive every scope.
  void* library = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    throw std::runtime_error(std::string("cannot open the library: ") + dlerror());
  }
  RdmaLibrary rdma{};
  resolve(library, "ibv_get_device_list", rdma.get_device_list);
  resolve(library, "ibv_get_device_name", rdma.get_device_name);
  resolve(library, "ibv_open_device", rdma.open_device);
  resolve(library, "ibv_free_device_list", rdma.free_device_list);
  resolve(library, "ibv_close_device", rdma.close_device);
  resolve(library, "ibv_alloc_pd", rdma.alloc_pd);
  resolve(library, "ibv_dealloc_pd", rdma.dealloc_pd);
  resolve(library, "ibv_create_cq", rdma.create_cq);
  resolve(library, "ibv_destroy_cq", rdma.destroy_cq);
  resolve(library, "ibv_create_qp", rdma.create_qp);
  resolve(library, "ibv_destroy_qp", rdma.destroy_qp);
  resolve(library, "ibv_modify_qp", rdma.modify_qp);
  resolve(library, "ibv_query_port", rdma.query_port);
  resolve(library, "ibv_query_gid", rdma.query_gid);
  resolve(library, "ibv_reg_mr", rdma.reg_mr);
  resolve(library, "ibv_dereg_mr", rdma.dereg_mr);
  return rdma;
}

}  // namespace ringbolt::jaccl
