#include "verbs/connection_manager.h"

#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/error.h"
#include "verbs/symbol_finder.h"

namespace ringbolt::verbs {
namespace {

constexpr std::string_view kCmName = "librdmacm.so.1";

/// The name to open for a verbs library of that name.
// A name without a folder is the dynamic linker's to find, as that of the verbs library was; else the one beside it.
std::string companion_of(const std::string& verbs) {
  const size_t slash = verbs.rfind('/');
  if (slash == std::string::npos) {
    return std::string(kCmName);
  }
  std::string path = verbs.substr(0, slash + 1) + std::string(kCmName);
  // Asked before the loader, whose words would name no remedy.
  if (::access(path.c_str(), R_OK) != 0) {
    throw base::Error(ENOENT, "find", path,
                      fmt::format("{} has no connection manager beside it: build or install it, or choose another "
                                  "verbs library with RINGBOLT_VERBS",
                                  verbs));
  }
  return path;
}

void find_all(SymbolFinder& in, CmCalls& calls) {
  in.need("rdma_create_event_channel", calls.create_event_channel);
  in.need("rdma_destroy_event_channel", calls.destroy_event_channel);
  in.need("rdma_get_cm_event", calls.get_cm_event);
  in.need("rdma_ack_cm_event", calls.ack_cm_event);
  in.need("rdma_create_id", calls.create_id);
  in.need("rdma_destroy_id", calls.destroy_id);
  in.need("rdma_migrate_id", calls.migrate_id);
  in.need("rdma_set_option", calls.set_option);
  in.need("rdma_bind_addr", calls.bind_addr);
  in.need("rdma_listen", calls.listen);
  in.need("rdma_resolve_addr", calls.resolve_addr);
  in.need("rdma_resolve_route", calls.resolve_route);
  in.need("rdma_create_qp", calls.create_qp);
  in.need("rdma_destroy_qp", calls.destroy_qp);
  in.need("rdma_connect", calls.connect);
  in.need("rdma_accept", calls.accept);
  in.need("rdma_reject", calls.reject);
  in.need("rdma_notify", calls.notify);
  in.need("rdma_disconnect", calls.disconnect);
  in.need("rdma_event_str", calls.event_str);
}

}  // namespace

ConnectionManager::ConnectionManager(std::string name, const CmCalls& calls, const Library& verbs)
    : loaded_(std::make_shared<const Loaded>(Loaded{std::move(name), calls, verbs})) {
  RINGBOLT_ASSERT(calls.create_id != nullptr && calls.get_cm_event != nullptr && calls.create_qp != nullptr);
}

ConnectionManager ConnectionManager::open(const Library& verbs) {
  const std::string name = companion_of(verbs.name());
  SymbolFinder finder(name);
  CmCalls calls;
  find_all(finder, calls);
  if (!finder.missing().empty()) {
    throw base::Error(ENOSYS, "find functions", name,
                      fmt::format("it lacks {}; is it a connection manager?", finder.missing()));
  }
  // Both sonames are taken once a process: where somebody else's libibverbs.so.1 came first, that is what the new
  // library was linked to, and it would make queue pairs that `verbs` knows nothing of. Any function would do: it is
  // looked for in the connection manager's own dependencies.
  int (*beneath)(ibv_cq*) = nullptr;
  if (!finder.find("ibv_destroy_cq", beneath) || beneath != verbs.calls().destroy_cq) {
    throw base::Error(
        ELIBBAD, "pair", fmt::format("{} and {}", name, verbs.name()),
        "the connection manager works on another verbs library that this process had loaded before: start "
        "the program with the folder of the wanted ones in front on LD_LIBRARY_PATH");
  }
  return ConnectionManager(name, calls, verbs);
}

}  // namespace ringbolt::verbs
