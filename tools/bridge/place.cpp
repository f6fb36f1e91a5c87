#include "bridge/place.h"

#include <sys/un.h>

#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "failure.h"

namespace ringbolt::tools::bridge {
namespace {

constexpr size_t kMostPath = sizeof(sockaddr_un::sun_path) - 1;

[[noreturn]] void refuse_place(const std::string& option, const std::string& text, const std::string& why) {
  throw UsageError(fmt::format("{} \"{}\": {}; write tcp:HOST:PORT, rdma:HOST:PORT or unix:PATH", option, text, why));
}

}  // namespace

std::string Place::text() const {
  if (kind == Kind::unix_socket) {
    return "unix:" + path;
  }
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return fmt::format("{}:{}{}{}:{}", kind == Kind::tcp ? "tcp" : "rdma", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "",
                     port);
}

Place parse_place(const std::string& option, const std::string& text) {
  Place place;
  const size_t first = text.find(':');
  const std::string kind = text.substr(0, first);
  const std::string rest = first == std::string::npos ? "" : text.substr(first + 1);
  if (kind == "unix") {
    if (rest.empty() || rest.size() > kMostPath) {
      refuse_place(option, text,
                   rest.empty() ? "there is no path" : fmt::format("a path has {} bytes at most", kMostPath));
    }
    place.kind = Place::Kind::unix_socket;
    place.path = rest;
    return place;
  }
  if (kind != "tcp" && kind != "rdma") {
    refuse_place(option, text, "it names no kind of connection");
  }
  place.kind = kind == "tcp" ? Place::Kind::tcp : Place::Kind::rdma;
  const size_t last = rest.rfind(':');
  if (last == std::string::npos || last == 0) {
    refuse_place(option, text, "the host or the port is missing");
  }
  std::string_view host(rest.data(), last);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    refuse_place(option, text, "an address of IPv6 stands in brackets");
  }
  const char* const end = rest.data() + rest.size();
  const auto [stop, error] = std::from_chars(rest.data() + last + 1, end, place.port);
  if (host.empty() || error != std::errc{} || stop != end) {
    refuse_place(option, text, "a host and a port from 0 to 65535 are wanted");
  }
  place.host = host;
  return place;
}

}  // namespace ringbolt::tools::bridge
