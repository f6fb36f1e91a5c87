#include "command_line.h"

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <string_view>

#include "validators.h"

namespace ringbolt::tools::bridge {
namespace {

constexpr uint64_t kMostMs = 86'400'000;  // a day

/// Bytes from `least` to `most`, also as 64K, 16M or 4G.
/// Powers of 1024; by what is left of `most`, so that a shift never loses bits.
class Bytes : public CLI::Validator {
 public:
  Bytes(uint64_t least, uint64_t most) : Validator(fmt::format("whole {} {}", least, most)) {
    func_ = [least, most](std::string& text) {
      constexpr std::string_view kUnits = "KMG";
      uint64_t value = 0;
      const char* const end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data(), end, value);
      const size_t unit = stop + 1 == end ? kUnits.find(*stop) : std::string_view::npos;
      const unsigned shift = unit == std::string_view::npos ? 0 : 10 * static_cast<unsigned>(unit + 1);
      if (error != std::errc{} || (stop != end && shift == 0) || value > most >> shift || value << shift < least) {
        return fmt::format("give a whole number from {} to {}, or such as 64K, 16M or 4G, not \"{}\"", least, most,
                           text);
      }
      text = std::to_string(value << shift);
      return std::string();
    };
  }
};

}  // namespace

void define_bridge(CLI::App& app, Request& request) {
  BridgeOptions& options = request.bridge;
  CLI::App* command = app.add_subcommand("bridge", "Join TCP or UNIX sockets to byte streams over RDMA");
  command->add_option("--listen", options.listen, "Where programs connect: tcp:HOST:PORT, unix:PATH or rdma:HOST:PORT")
      ->type_name("PLACE");
  command->add_option("--connect", options.connect, "Where each of these connections leads; one for each --listen")
      ->type_name("PLACE");
  command->add_option("--allow", options.allowed, "Who may connect (default: everybody who can)")
      ->type_name("ADDRESS[/PREFIX]");
  command->add_flag("--listen-anywhere", options.listens_anywhere, "Also listen where other machines reach TCP");
  command->add_option("--max-connections", options.max_connections, "Connections at a time")
      ->transform(Whole(1, 1'000'000))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--memory", options.memory_bytes, "For the buffers of all connections")
      ->transform(Bytes(1U << 20U, uint64_t{1} << 44U))
      ->capture_default_str()
      ->type_name("BYTES");
  command->add_option("--receive-bytes", options.receive_bytes, "Of a connection's receive buffer")
      ->transform(Bytes(4096, 1U << 24U))
      ->capture_default_str()
      ->type_name("BYTES");
  const auto add_time = [&](const char* name, uint64_t& value, const char* words) {
    command->add_option(name, value, words)->transform(Whole(0, kMostMs))->capture_default_str()->type_name("MS");
  };
  add_time("--linger", options.linger_ms, "How long the other side may be silent once one has ended");
  command->add_option("--connect-timeout", options.connect_timeout_ms, "Give up connecting after so long")
      ->transform(Whole(1, kMostMs))
      ->capture_default_str()
      ->type_name("MS");
  add_time("--drain", options.drain_ms, "How long connections may go on after SIGTERM");
  command->add_option("--stats", options.stats, "Serve counters over HTTP, at /metrics, at an address or UNIX socket")
      ->type_name("ADDRESS:PORT|PATH");
  command->add_option("--verbs", options.verbs, "The verbs library: auto, system, soft, or a path (default: auto)")
      ->type_name("LIB");
  command->footer(
      "Every connection to a place of --listen is one to the place of --connect that stands at its number; bytes pass\n"
      "as they are. One side of each pair is rdma. SIGTERM takes no more connections and ends with the last one; a\n"
      "second one ends at once.\n\n"
      "Examples:\n"
      "  ringbolt bridge --listen tcp:127.0.0.1:6379 --connect rdma:10.77.0.2:6379\n"
      "  ringbolt bridge --listen rdma:10.77.0.2:6379 --connect unix:/run/redis/redis.sock\n");
  command->callback([&request] { request.action = [&request] { return bridge_run(request.bridge); }; });
}

}  // namespace ringbolt::tools::bridge
