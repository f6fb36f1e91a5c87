#include "group/meeting.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <string_view>
#include <utility>

#include "base/byte_writer.h"
#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/authenticator.h"
#include "group/failure.h"

namespace ringbolt::group {
namespace {

/// Behind magic, port and four lengths; a host name has 255 at most.
constexpr size_t kMostHostBytes = 255;
constexpr size_t kMostMachineBytes = 96;
constexpr size_t kMostSecretBytes = 64;
constexpr size_t kMostProblemBytes = 500;
/// Left for all of join() behind the program's exchange, however long that took: meeting, survey, cables, measuring.
constexpr uint64_t kLeastBringUpMs = 30'000;
static_assert(4 + 2 + 4 * 2 + kMostHostBytes + kMostMachineBytes + kMostSecretBytes + kMostProblemBytes <=
              Tidings::kBytes);

/// The running kernel, and the network within it: namespaces have a 127.0.0.1 each.
/// Empty parts where /proc is not there: then two machines may look like one, and rank 0 is not found. See proc(5),
/// random(4) and namespaces(7).
std::string this_machine() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::array<char, 64> network{};
  const ssize_t length = ::readlink("/proc/self/ns/net", network.data(), network.size());
  return boot + " " + std::string(network.data(), length > 0 ? static_cast<size_t>(length) : 0);
}

std::string made_up_secret() {
  bootstrap::prepare_cryptography();
  std::string secret;
  for (const std::byte byte : bootstrap::random_nonce()) {
    secret += fmt::format("{:02x}", static_cast<unsigned>(byte));
  }
  return secret;
}

/// Before ranks have told each other anything the environment need not say where they meet; the rest it may say.
bootstrap::Config without_a_place(bootstrap::Environment environment) {
  // Any place that can be parsed: it is taken out again below.
  environment["RINGBOLT_COORDINATOR"] = "127.0.0.1:1";
  bootstrap::Config config = bootstrap::config_from(environment, bootstrap::read_file);
  config.host.clear();
  config.port = 0;
  config.source = fmt::format("rank {} of {}, by the program's exchange", config.rank, config.n_ranks);
  return config;
}

std::string host_of(const JoinOptions& options, const bootstrap::Environment& environment) {
  if (!options.host.empty()) {
    return options.host;
  }
  const auto found = environment.find("RINGBOLT_COORDINATOR");
  if (found == environment.end()) {
    return {};
  }
  const auto at = bootstrap::parse_host_port(found->second);
  return at ? at->host : std::string();
}

Tidings tidings_of_rank_0(const std::string& host, Meeting& meeting) {
  Tidings mine;
  mine.host = host;
  const std::string& bind = meeting.config.bind_address;
  if (mine.host.empty()) {
    mine.host = bind;
  }
  try {
    // Port 0: the kernel chooses a free one, which is told to all; so no two jobs can want the same.
    meeting.listening = bind.empty() ? bootstrap::Listening::everywhere() : bootstrap::Listening::open("", 0, bind);
    mine.port = meeting.listening.port;
    if (meeting.config.secret.empty()) {
      mine.secret = made_up_secret();
    }
  } catch (const base::Error& error) {
    mine.problem = error.what();  // the others come to the exchange all the same
  }
  return mine;
}

}  // namespace

std::vector<std::byte> emit(const Tidings& tidings) {
  base::ByteWriter writer;
  writer.put(Tidings::kMagic);
  writer.put(tidings.port);
  writer.put_text(std::string_view(tidings.machine).substr(0, kMostMachineBytes));
  writer.put_text(std::string_view(tidings.host).substr(0, kMostHostBytes));
  writer.put_text(std::string_view(tidings.secret).substr(0, kMostSecretBytes));
  writer.put_text(std::string_view(tidings.problem).substr(0, kMostProblemBytes));
  std::vector<std::byte> bytes = std::move(writer).bytes();
  // The program's exchange moves as much from each rank.
  bytes.resize(Tidings::kBytes);
  return bytes;
}

std::optional<Tidings> parse_tidings(std::span<const std::byte> bytes) {
  base::ByteReader reader(bytes);
  if (bytes.size() != Tidings::kBytes || reader.take<uint32_t>() != Tidings::kMagic) {
    return std::nullopt;
  }
  Tidings tidings;
  tidings.port = reader.take<uint16_t>();
  tidings.machine = reader.take_text(kMostMachineBytes);
  tidings.host = reader.take_text(kMostHostBytes);
  tidings.secret = reader.take_text(kMostSecretBytes);
  tidings.problem = reader.take_text(kMostProblemBytes);
  return reader.is_sound() ? std::optional(tidings) : std::nullopt;
}

void take(const std::vector<Tidings>& all, bootstrap::Config& meeting) {
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank].problem.empty()) {
      throw JoinError(fmt::format("rank {}: {}", rank, all[rank].problem));
    }
    if (all[0].host.empty() && all[rank].machine != all[0].machine) {
      throw JoinError(fmt::format("rank {} is on another machine than rank 0, which does not say where it is reached: "
                                  "give rank 0 a host, an address of its machine",
                                  rank),
                      EINVAL);
    }
  }
  meeting.host = all[0].host.empty() ? "127.0.0.1" : all[0].host;
  meeting.port = all[0].port;
  meeting.is_root_listening = true;
  if (meeting.secret.empty()) {
    meeting.secret = all[0].secret;
  }
}

uint64_t left_for_bring_up_ms(uint64_t limit_ms, uint64_t took_ms) {
  return std::max(limit_ms - std::min(limit_ms, took_ms), std::min(limit_ms, kLeastBringUpMs));
}

Meeting meeting_of(const JoinOptions& options, const bootstrap::Environment& environment) {
  Meeting meeting;
  const Exchange& exchange = options.exchange;
  const uint64_t begin_ns = base::now_ns();
  if (exchange.call == nullptr) {
    if (!options.host.empty() && options.port == 0) {
      throw JoinError(fmt::format("the ranks meet at {}, at no port: give rank 0's port, too", options.host), EINVAL);
    }
    meeting.config = bootstrap::config_from(environment, bootstrap::read_file);
    return meeting;
  }
  meeting.config = without_a_place(environment);
  bootstrap::Config& config = meeting.config;
  if (config.n_ranks == 1) {
    return meeting;
  }
  Tidings mine = config.rank == 0 ? tidings_of_rank_0(host_of(options, environment), meeting) : Tidings{};
  mine.machine = this_machine();
  const std::vector<std::byte> told = emit(mine);
  std::vector<std::byte> heard(config.n_ranks * Tidings::kBytes);
  if (const int code = exchange.call(exchange.context, told.data(), heard.data(), Tidings::kBytes); code != 0) {
    throw JoinError(fmt::format("rank {}: the program's exchange failed with {}", config.rank, code), code);
  }
  std::vector<Tidings> all;
  for (uint32_t rank = 0; rank < config.n_ranks; ++rank) {
    const auto tidings = parse_tidings(std::span(heard).subspan(rank * Tidings::kBytes, Tidings::kBytes));
    if (!tidings) {
      throw JoinError(fmt::format("rank {}: what the program's exchange gave for rank {} is not what that rank told: "
                                  "it must gather {} bytes of each rank, in the order of ranks",
                                  config.rank, rank, Tidings::kBytes),
                      EPROTO);
    }
    all.push_back(*tidings);
  }
  take(all, config);
  config.timeout_ms = left_for_bring_up_ms(config.timeout_ms, (base::now_ns() - begin_ns) / 1'000'000);
  if (config.rank == 0) {
    config.listening_fd = meeting.listening.sockets.front().get();
  }
  return meeting;
}

}  // namespace ringbolt::group
