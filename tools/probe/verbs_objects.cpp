#include "probe/verbs_objects.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "probe/probe_failure.h"

namespace ringbolt::tools {
namespace {

bool is_zero(const ibv_gid& gid) {
  return std::all_of(std::begin(gid.raw), std::end(gid.raw), [](uint8_t byte) { return byte == 0; });
}

bool is_ipv4(const ibv_gid& gid) {
  constexpr uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, kPrefix, sizeof kPrefix) == 0;
}

}  // namespace

void fail_call(const char* call, int error) {
  throw ProbeFailure(fmt::format("{}: {}", call, std::strerror(std::abs(error))));
}

OwnedVerbs<ibv_context> open_device(const VerbsLibrary& verbs, const std::string& name) {
  int count = 0;
  ibv_device** list = verbs.get_device_list(&count);
  if (list == nullptr) {
    fail_call("ibv_get_device_list", errno);
  }
  std::string names;
  ibv_device* found = nullptr;
  for (int i = 0; i < count; ++i) {
    const std::string one = verbs.get_device_name(list[i]);
    names += (names.empty() ? "" : ", ") + one;
    if (found == nullptr && (name.empty() || name == one)) {
      found = list[i];
    }
  }
  ibv_context* context = found == nullptr ? nullptr : verbs.open_device(found);
  const int error = errno;
  verbs.free_device_list(list);
  if (found == nullptr) {
    throw ProbeFailure(names.empty() ? "the verbs library has no device"
                                     : fmt::format("there is no device {}; there are: {}", name, names));
  }
  errno = error;
  return own(verbs, context, "ibv_open_device");
}

uint8_t choose_gid(const VerbsLibrary& verbs, ibv_context* context, uint8_t port, ibv_gid& gid) {
  ibv_port_attr attributes{};
  if (const int error = verbs.query_port(context, port, &attributes)) {
    fail_call("ibv_query_port", error);
  }
  std::optional<uint8_t> chosen;
  for (int index = 0; index < std::min(attributes.gid_tbl_len, 256); ++index) {
    ibv_gid one{};
    if (verbs.query_gid(context, port, index, &one) != 0 || is_zero(one)) {
      continue;
    }
    if (!chosen || is_ipv4(one)) {
      chosen = static_cast<uint8_t>(index);
      gid = one;
    }
    if (is_ipv4(one)) {
      break;
    }
  }
  if (!chosen) {
    throw ProbeFailure("the port has no GID: does its interface have an address?");
  }
  return *chosen;
}

}  // namespace ringbolt::tools
