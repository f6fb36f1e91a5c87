#include "pair/command_line.h"

#include <CLI/CLI.hpp>

#include "validators.h"

namespace ringbolt::tools::pair {

void add_end(CLI::App* command, EndOptions& options) {
  command->add_option("--end", options.end)->group("")->check(OneOf({"client", "server"}));
  command->add_option("--peer", options.peer)->group("");
  command->add_option("--channel", options.channel_fd)->group("")->transform(Whole(0, INT32_MAX));
  command->add_flag("--tell-progress", options.tells_progress)->group("");
}

void add_meeting(CLI::App* command, PairOptions& options) {
  command->add_option("host", options.host, "Where the server runs; without it (and --nodes) this is the server")
      ->type_name("HOST");
  command->add_option("--nodes", options.nodes, "Run both ends, on two nodes of a cluster")->type_name("A,B");
  command->add_option("--cluster,--name", options.cluster,
                      "The cluster of --nodes (default: $RINGBOLT_CLUSTER, else the only one that is up)");
  add_end(command, options);
}

void add_library(CLI::App* command, PairOptions& options) {
  command->add_option("--verbs", options.verbs, "The verbs library: ours, system, or a path")
      ->capture_default_str()
      ->type_name("LIBRARY");
}

void add_device(CLI::App* command, PairOptions& options) {
  command->add_option("-d,--ib-dev", options.device, "Device (default: the first)")->type_name("DEV");
  command->add_option("-i,--ib-port", options.device_port, "Its port")->transform(Whole(1U, 255U));
  command->add_option("-x,--gid-index", options.gid_index, "GID (default: the first that stands for an IPv4 address)")
      ->transform(Whole(0, 255));
}

void add_path(CLI::App* command, PairOptions& options) {
  command->add_option("-m,--mtu", options.mtu_bytes, "Bytes of a packet (default: as the port has)")
      ->check(OneOf({"256", "512", "1024", "2048", "4096"}));
  command->add_option("-p,--port", options.tcp_port, "TCP port where the ends meet")
      ->transform(Whole(1, 65535))
      ->capture_default_str();
  command->add_option("-t,--tx-depth", options.tx_depth, "Operations under way at most")->transform(Whole(1U, 16384U));
}

void add_retries(CLI::App* command, PairOptions& options) {
  command->add_option("-u,--qp-timeout", options.timeout_code, "Retry after 4.096 us * 2^N")->transform(Whole(0U, 31U));
  command->add_option("--retry_count", options.retry_count, "Retries before the connection fails")
      ->transform(Whole(0U, 7U));
}

void add_line_rate(CLI::App* command, PairOptions& options) {
  command
      ->add_option(
          "--line-rate", options.line_rate_gbps,
          "Gb/s that no figure can exceed (default: what the port says, unless it is Ringbolt's; 0: judge nothing)")
      ->check(Real(0.0, 1e6))
      ->type_name("GBPS");
}

}  // namespace ringbolt::tools::pair
