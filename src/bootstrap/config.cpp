#include "bootstrap/config.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include <fmt/format.h>

#include "base/error.h"
#include "bootstrap/hello.h"

namespace ringbolt::bootstrap {
namespace {

// Of a name in the DNS (RFC 1035, 2.3.4).
constexpr size_t kMostHostBytes = 255;

// '_' is no letter of a host name (RFC 952), but occurs in names that resolve, as of containers.
bool is_host_letter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '_';
}

bool is_v6_letter(char c) { return is_host_letter(c) || c == ':' || c == '%'; }

bool is_v6_address(const std::string& text) {
  in6_addr address{};
  return ::inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

/// By its name or its number.
bool is_interface(const std::string& scope) {
  unsigned number = 0;
  // RFC 4007, section 11: a zone is an interface's name or its number.
  const auto [end, error] = std::from_chars(scope.data(), scope.data() + scope.size(), number);
  char name[IF_NAMESIZE];
  return ::if_nametoindex(scope.c_str()) != 0 ||
         (error == std::errc{} && end == scope.data() + scope.size() && ::if_indextoname(number, name) != nullptr);
}

}  // namespace

base::Parsed<std::string> parse_host(std::string_view text) {
  const bool is_bracketed = text.size() > 2 && text.front() == '[' && text.back() == ']';
  const std::string_view host = is_bracketed ? text.substr(1, text.size() - 2) : text;
  const bool is_v6 = is_bracketed || host.find(':') != std::string_view::npos;
  if (host.empty() || host.size() > kMostHostBytes ||
      !std::all_of(host.begin(), host.end(), is_v6 ? is_v6_letter : is_host_letter) ||
      (is_v6 && !is_v6_address(std::string(host.substr(0, host.find('%')))))) {
    return base::refuse(0, "is neither a name nor an address");
  }
  return std::string(host);
}

// "10.0.0.256" would be looked up as a name, for seconds and in vain.
std::string problem_of_host(const std::string& host) {
  in_addr v4{};
  if (host.find_first_not_of("0123456789.") == std::string::npos && !host.empty() &&
      ::inet_pton(AF_INET, host.c_str(), &v4) != 1) {
    return fmt::format("{} is no IPv4 address: write four numbers from 0 to 255, as in 10.0.0.1", host);
  }
  in6_addr address{};
  return ::inet_pton(AF_INET6, host.c_str(), &address) == 1 && IN6_IS_ADDR_LINKLOCAL(&address)
             ? fmt::format("{} is an address of a single link: append this machine's interface to it, {}%eth0", host,
                           host)
             : "";
}

base::Parsed<HostPort> parse_host_port(std::string_view text) {
  const bool is_bracketed = !text.empty() && text.front() == '[';
  // The first colon: an IPv6 address without brackets fails, since where its port begins can't be told.
  const size_t colon = is_bracketed ? text.find("]:") : text.find(':');
  if (text.size() > kMostHostBytes || colon == std::string_view::npos) {
    return base::refuse(0, "is no HOST:PORT or [IPV6]:PORT");
  }
  const std::string_view host = is_bracketed ? text.substr(1, colon - 1) : text.substr(0, colon);
  const std::string_view port = text.substr(colon + (is_bracketed ? 2 : 1));
  const bool is_host = is_bracketed ? is_v6_address(std::string(host.substr(0, host.find('%')))) : !host.empty();
  if (!is_host || !std::all_of(host.begin(), host.end(), is_bracketed ? is_v6_letter : is_host_letter)) {
    return base::refuse(0, "has no host that can be one; an IPv6 address goes in brackets: [::1]:PORT");
  }
  HostPort at{std::string(host), 0};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), at.port);
  if (error != std::errc{} || end != port.data() + port.size() || at.port == 0) {
    return base::refuse(0, "has no port from 1 to 65535");
  }
  return at;
}

std::string to_text(const HostPort& at) {
  return at.host.find(':') == std::string::npos ? fmt::format("{}:{}", at.host, at.port)
                                                : fmt::format("[{}]:{}", at.host, at.port);
}

void check(const Config& config) {
  const auto refuse = [](int error, const std::string& call, const std::string& remedy) {
    throw base::Error(error, call, "rendezvous", remedy);
  };
  if (config.n_ranks == 0 || config.n_ranks > kMaxRanks) {
    refuse(EINVAL, fmt::format("a group of {} ranks", config.n_ranks), fmt::format("take 1 to {}", kMaxRanks));
  }
  if (config.rank >= config.n_ranks) {
    refuse(EINVAL, fmt::format("rank {} of {}", config.rank, config.n_ranks), "ranks count from 0");
  }
  if (config.group.size() > kMaxGroupNameBytes ||
      !std::all_of(config.group.begin(), config.group.end(), [](char c) { return c >= ' ' && c <= '~'; })) {
    refuse(EINVAL, "the group's name", fmt::format("take up to {} printable letters", kMaxGroupNameBytes));
  }
  // A single rank meets nobody. Rank 0 with an inherited socket listens already, wherever that is.
  if (config.n_ranks > 1 && (config.rank != 0 || config.listening_fd < 0) &&
      (config.host.empty() || config.port == 0)) {
    refuse(EINVAL, fmt::format("meet at \"{}\" port {}", config.host, config.port), "give rank 0's host and a port");
  }
  for (const std::string& host : {config.host, config.bind_address}) {
    std::string problem = problem_of_host(host);
    if (const size_t percent = host.find('%');
        percent != std::string::npos && !is_interface(host.substr(percent + 1))) {
      problem = fmt::format("{} names no interface of this machine; see: ip link", host);
    }
    if (!problem.empty()) {
      refuse(EINVAL, fmt::format("meet at {}", to_text({host, config.port})), problem);
    }
  }
}

}  // namespace ringbolt::bootstrap
