#include "verbs/library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/error.h"
#include "verbs/errand.h"
#include "verbs/symbol_finder.h"

namespace ringbolt::verbs {
namespace {

#ifdef __APPLE__
// The dynamic linker's own search first; on macOS dylibs of the system are in a cache, not in the folder, and are
// found by their full path.
constexpr std::array kSystemNames = {"librdma.dylib", "/usr/lib/librdma.dylib"};
constexpr std::array kSoftNames = {"librdma.dylib"};
#else
constexpr std::array kSystemNames = {"libibverbs.so.1"};
constexpr std::array kSoftNames = {"libibverbs.so.1"};
#endif

// Without one of these nothing works; of the others each caller sees to it that the pointer is there.
void find_needed(SymbolFinder& in, Calls& calls) {
  in.need("ibv_get_device_list", calls.get_device_list);
  in.need("ibv_free_device_list", calls.free_device_list);
  in.need("ibv_get_device_name", calls.get_device_name);
  in.need("ibv_open_device", calls.open_device);
  in.need("ibv_close_device", calls.close_device);
  in.need("ibv_alloc_pd", calls.alloc_pd);
  in.need("ibv_dealloc_pd", calls.dealloc_pd);
  in.need("ibv_create_cq", calls.create_cq);
  in.need("ibv_destroy_cq", calls.destroy_cq);
  in.need("ibv_create_qp", calls.create_qp);
  in.need("ibv_modify_qp", calls.modify_qp);
  in.need("ibv_destroy_qp", calls.destroy_qp);
  in.need("ibv_query_port", calls.query_port);
  in.need("ibv_query_gid", calls.query_gid);
  in.need("ibv_reg_mr", calls.reg_mr);
  in.need("ibv_dereg_mr", calls.dereg_mr);
}

void find_optional(SymbolFinder& in, Calls& calls) {
  in.find("ibv_query_device", calls.query_device);
  in.find("ibv_query_qp", calls.query_qp);
  in.find("ibv_create_comp_channel", calls.create_comp_channel);
  in.find("ibv_destroy_comp_channel", calls.destroy_comp_channel);
  in.find("ibv_get_cq_event", calls.get_cq_event);
  in.find("ibv_ack_cq_events", calls.ack_cq_events);
  in.find("ibv_get_async_event", calls.get_async_event);
  in.find("ibv_ack_async_event", calls.ack_async_event);
  in.find("ibv_create_ah", calls.create_ah);
  in.find("ibv_destroy_ah", calls.destroy_ah);
  in.find("ibv_alloc_buf", calls.alloc_buf);
  in.find("ibv_free_buf", calls.free_buf);
  // An internal name of libibverbs: the header's inline ibv_query_gid_ex() calls it.
  in.find("_ibv_query_gid_ex", calls.query_gid_ex);
  in.find("ibv_wc_status_str", calls.wc_status_str);
  // Of Ringbolt's own library alone; null says that it is another one.
  in.find("ringbolt_receive_in_place", calls.receive_in_place);
  in.find("ringbolt_expect_refusals", calls.expect_refusals);
}

/// Throws base::Error.
Library load(const std::string& name) {
  SymbolFinder finder(name);
  Calls calls;
  find_needed(finder, calls);
  find_optional(finder, calls);
  if (!finder.missing().empty()) {
    throw base::Error(ENOSYS, "find functions", name,
                      fmt::format("it lacks {}; is it a verbs library?", finder.missing()));
  }
  return Library(name, calls);
}

Library open_system() {
  std::string reasons;
  for (const char* name : kSystemNames) {
    try {
      return load(name);
    } catch (const base::Error& error) {
      // There is one, and it is of no use: the next name would hide that.
      if (error.errno_value() == ENOSYS) {
        throw;
      }
      reasons += (reasons.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  throw base::Error(ELIBACC, "find", "the system's verbs library",
                    fmt::format("install rdma-core, or take RINGBOLT_VERBS=soft ({})", reasons));
}

Library open_soft() {
  std::string tried;
  for (const std::string& path : soft_library_paths()) {
    if (::access(path.c_str(), R_OK) == 0) {
      return load(path);
    }
    tried += (tried.empty() ? "" : ", ") + path;
  }
  throw base::Error(ENOENT, "find", "Ringbolt's verbs library",
                    fmt::format("there is no {}; build or install it, or give RINGBOLT_VERBS its path", tried));
}

// The system's library is taken only if it could carry something now; Ringbolt's own always can.
Library open_any() {
  std::string problem;
  try {
    Library system = open_system();
    if (has_active_port(system)) {
      return system;
    }
    problem = fmt::format("{} has no device with an active port", system.name());
  } catch (const base::Error& error) {
    // Kept for the error of the other one: who has neither wants to know both reasons.
    problem = error.what();
  }
  try {
    return open_soft();
  } catch (const base::Error& error) {
    throw base::Error(error.errno_value(), error.call(), error.object(), fmt::format("{}; {}", error.what(), problem));
  }
}

std::string name_of(const Calls& calls, ibv_device* device) {
  const char* name = calls.get_device_name(device);
  return name == nullptr ? "?" : name;
}

bool is_active(const Calls& calls, ibv_context* context, const std::string& name, unsigned port) {
  const DriverCall at(Step::kQueryPort, name);
  ibv_port_attr attributes{};
  return query_port(calls, context, static_cast<uint8_t>(port), attributes) == 0 && attributes.state == IBV_PORT_ACTIVE;
}

unsigned n_ports(const Calls& calls, ibv_context* context, const std::string& name) {
  const DriverCall at(Step::kQueryDevice, name);
  ibv_device_attr device{};
  return calls.query_device != nullptr && calls.query_device(context, &device) == 0 ? device.phys_port_cnt : 1;
}

bool is_first_port_active(const Calls& calls, ibv_context* context, const std::string& name) {
  return is_active(calls, context, name, 1);
}

bool is_further_port_active(const Calls& calls, ibv_context* context, const std::string& name) {
  const unsigned n = n_ports(calls, context, name);
  for (unsigned port = 2; port <= n; ++port) {
    if (is_active(calls, context, name, port)) {
      return true;
    }
  }
  return false;
}

/// Whether that is so of one device of the list.
// Devices that don't open count as none: another program may have them.
bool is_any(const Calls& calls, std::span<ibv_device*> devices,
            bool (*is_so)(const Calls&, ibv_context*, const std::string&)) {
  for (ibv_device* device : devices) {
    const std::string name = name_of(calls, device);
    const DriverCall at(Step::kOpenDevice, name);
    // One at a time: some devices can be opened once only.
    if (ibv_context* context = calls.open_device(device)) {
      const bool is_found = is_so(calls, context, name);
      const DriverCall closing("ibv_close_device");
      calls.close_device(context);
      if (is_found) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

Library::Library(std::string name, const Calls& calls)
    : library_(std::make_shared<const Loaded>(Loaded{std::move(name), calls})) {
  RINGBOLT_ASSERT(calls.get_device_list != nullptr && calls.modify_qp != nullptr && calls.dereg_mr != nullptr);
}

Library Library::open(std::string_view choice) {
  if (choice == "auto") {
    return open_any();
  }
  if (choice == "system") {
    return open_system();
  }
  if (choice == "soft") {
    return open_soft();
  }
  // A name without a slash would be looked up on the library path. A misspelt word would open whatever has that name.
  if (choice.find('/') == std::string_view::npos) {
    throw base::Error(EINVAL, "choose a verbs library", fmt::format("\"{}\"", choice),
                      "RINGBOLT_VERBS takes auto, system, soft, or a path");
  }
  return load(std::string(choice));
}

std::vector<std::string> soft_library_paths() {
  std::vector<std::filesystem::path> folders;
  std::error_code ignored;
  Dl_info self{};
  if (::dladdr(reinterpret_cast<const void*>(&soft_library_paths), &self) != 0 && self.dli_fname != nullptr) {
    // Of an executable this is what it was called as, which may lead nowhere from here.
    const auto object = std::filesystem::canonical(self.dli_fname, ignored);
    if (!ignored) {
      folders.push_back(object.parent_path());
    }
  }
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  if (!ignored && (folders.empty() || folders.front() != program.parent_path())) {
    folders.push_back(program.parent_path());
  }
  std::vector<std::string> paths;
  for (const auto& folder : folders) {
    for (const char* name : kSoftNames) {
      paths.push_back((folder / name).string());
      paths.push_back((folder / ".." / "lib" / "ringbolt" / name).lexically_normal().string());
    }
  }
  return paths;
}

bool has_active_port(const Library& library) {
  const Calls& calls = library.calls();
  int count = 0;
  const DriverCall at(Step::kGetDeviceList, library.name());
  ibv_device** list = calls.get_device_list(&count);
  if (list == nullptr) {
    return false;
  }
  const std::span<ibv_device*> devices(list, static_cast<size_t>(count));
  const bool is_found = is_any(calls, devices, is_first_port_active) || is_any(calls, devices, is_further_port_active);
  calls.free_device_list(list);
  return is_found;
}

}  // namespace ringbolt::verbs
