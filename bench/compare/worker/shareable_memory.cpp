#include "shareable_memory.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace ringbolt::bench {

std::shared_ptr<std::byte> shareable_memory(ibv_pd& pd, std::size_t length_bytes) {
  using Allocate = void* (*)(ibv_pd*, std::size_t, void** buffer);
  using Free = void (*)(void* buffer);
  const auto allocate = reinterpret_cast<Allocate>(dlvsym(RTLD_DEFAULT, "ibv_alloc_buf", "IBVERBS_1.17"));
  const auto give_back = reinterpret_cast<Free>(dlvsym(RTLD_DEFAULT, "ibv_free_buf", "IBVERBS_1.17"));
  if (allocate == nullptr || give_back == nullptr) {
    throw std::runtime_error(fmt::format("{} has no ibv_alloc_buf: no shareable memory here", verbs_library_path()));
  }
  void* buffer = nullptr;
  auto* bytes = static_cast<std::byte*>(allocate(&pd, length_bytes, &buffer));
  if (bytes == nullptr) {
    throw std::runtime_error(fmt::format("verbs ({}): ibv_alloc_buf: {}", verbs_library_path(), std::strerror(errno)));
  }
  return {bytes, [buffer, give_back](std::byte*) { give_back(buffer); }};
}

std::string verbs_library_path() {
  Dl_info info{};
  void* symbol = dlsym(RTLD_DEFAULT, "ibv_get_device_list");
  return symbol != nullptr && dladdr(symbol, &info) != 0 ? info.dli_fname : "unknown library";
}

}  // namespace ringbolt::bench
