#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/parsed.h"

namespace ringbolt::bootstrap {

/// Machines that boot together differ by tens of seconds.
inline constexpr uint64_t kDefaultTimeoutMs = 60'000;
/// How often Config::is_called_off is asked at least.
inline constexpr int kCalledOffMs = 250;

/// Where a rank meets the others. A value. Copied by nobody: join() uses it until it returns.
struct Config {
  uint32_t rank = 0;
  uint32_t n_ranks = 1;  ///< 1 to kMaxRanks
  /// Where rank 0 is: an IPv4 or IPv6 address or a name, and a port.
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  /// Where rank 0 listens: an address of its own. Empty: at `host` if that is an address of its machine or "localhost",
  /// else at all addresses, since a name may mean another address on its own machine.
  std::string bind_address = {};
  /// Groups of different names refuse each other. Up to 64 printable letters.
  std::string group = {};
  /// What all ranks know and nobody else: 32 random letters, say. Never sent. Empty: whoever reaches the port may join.
  std::string secret = {};
  uint64_t timeout_ms = kDefaultTimeoutMs;  ///< for the whole of joining
  uint64_t handshake_timeout_ms = 5'000;    ///< for one stranger's connection to say who it is
  /// Rank 0 says whom all wait for at each change, and again after so long: then others can tell that it is alive.
  uint64_t roster_again_ms = 500;
  /// Who has heard nothing of a waiting rank 0 for so long, two rosters and a bit, says so.
  uint64_t silent_ms = 1'250;
  /// For rank 0: sockets that listen already (Listening::open); not closed. Empty host and port then serve others only.
  int listening_fd = -1;
  /// For the others: rank 0 has said by other means that it listens there, so that it has ended if nobody does.
  bool is_root_listening = false;
  /// Where this is from, in words, for messages: "RANK, MASTER_ADDR".
  std::string source = {};
  /// Asked a few times a second while the ranks have not met: true, and this one gives up at once, ECANCELED. May be
  /// empty.
  std::function<bool()> is_called_off = {};
};

struct HostPort {
  std::string host;
  uint16_t port = 0;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

/// Reads a host alone: "name", "10.0.0.1", "fd77::1" or "[fd77::1]". Any bytes are safe. Thread-safe.
base::Parsed<std::string> parse_host(std::string_view text);
/// Why nobody can listen at `host` or call it, or "": an IPv6 address of a single link (fe80::/10) without the
/// interface of this machine. Thread-safe.
std::string problem_of_host(const std::string& host);
/// Reads "name:port", "10.0.0.1:port" and "[v6]:port". Any bytes are safe. Thread-safe.
base::Parsed<HostPort> parse_host_port(std::string_view text);
/// "10.0.0.1:4000" or "[::1]:4000". Thread-safe.
std::string to_text(const HostPort& at);

inline bool is_called_off(const Config& config) { return config.is_called_off && config.is_called_off(); }
/// The longest that a wait may be before that is asked again.
inline int most_wait_ms(const Config& config) { return config.is_called_off ? kCalledOffMs : 60'000; }

/// Refuses what no rendezvous can be made of, as base::Error. Thread-safe.
void check(const Config& config);

}  // namespace ringbolt::bootstrap
