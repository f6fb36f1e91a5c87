#include <memory>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/formatter.h"
#include "cluster/limits.h"
#include "command_line.h"
#include "pair/command_line.h"
#include "shuffle/kind.h"
#include "validators.h"

namespace ringbolt::tools {
namespace {

/// A paragraph.
std::string shuffle_kinds() {
  std::string text = "Kinds of --shuffle:";
  for (const shuffle::KindText& one : shuffle::kKindTexts) {
    text += fmt::format("{} {} ({})", text.ends_with(')') ? "," : "", one.name, one.meaning);
  }
  return text + ".\n\n";
}

void define_run(CLI::App& app, Request& request) {
  CLI::App* command = app.add_subcommand("run", "Run a program on every node, or on some");
  add_cluster(command, request.run.cluster);
  command
      ->add_option("--emulate", request.run.emulated.spec,
                   "On a cluster of its own, a topology or a file, that is made before and removed after")
      ->type_name("SPEC|FILE")
      ->excludes(command->get_option("--cluster"));
  command->add_flag("--netns", request.run.emulated.is_netns,
                    "Of --emulate: each node a network namespace (needs root)");
  command->add_flag("--overlay", request.run.emulated.has_overlay, "Of --emulate: with the device ringbolt0");
  command->add_option("--like", request.run.emulated.like, "Of --emulate: whose limits the devices take on")
      ->type_name("PROFILE");
  command->add_option("--fault", request.run.faults, "Of --emulate: a fault that is there from the beginning")
      ->type_name("'KIND ...'");
  command->add_option("--nodes,--node", request.run.nodes, "Nodes, by number or name (default: all)")
      ->delimiter(',')
      ->type_name("K[,K...]");
  CLI::Option* tag =
      command->add_flag("--tag", request.run.is_tagged, "Prefix output with the node even if there is one");
  command->add_flag("--no-tag", request.run.is_untagged, "Never prefix output")->excludes(tag);
  command->add_flag("--keep-going", request.run.keeps_going, "Let the others run when a node fails");
  command->add_flag("--explain", request.run.is_explained,
                    "Say why calls are refused and requests fail, and where they were made");
  command->add_flag("--sanitize{on}", request.run.sanitized, "Find mistakes that a card forgives: all, or some kinds")
      ->type_name("KIND,...");
  command
      ->add_option(
          "--shuffle", request.run.shuffled,
          "Do what the specification allows and cards rarely do, by a seed, or by one after the other until one "
          "fails")
      ->type_name("SEED[-SEED][:KIND,...]");
  command->add_option("--limit", request.run.limit_s, "Seconds after which a run that is shuffled has failed")
      ->check(Real(0.001, 1e7))
      ->capture_default_str()
      ->type_name("S");
  command
      ->add_option("--report", request.run.reports,
                   "Also write what --sanitize finds: sarif:FILE, junit:FILE or json:FILE")
      ->type_name("KIND:FILE");
  command
      ->add_flag("--record{on}", request.run.recorded,
                 "Keep a timeline for `ringbolt trace`, in so much memory a process (4M)")
      ->type_name("SIZE");
  command
      ->add_option("--html", request.run.html_path,
                   "Also write a page of what --sanitize and --explain say, with timelines")
      ->type_name("FILE");
  command->add_option("--timeout", request.run.timeout_s, "End everything after so many seconds")
      ->check(Real(0.001, 1e7))
      ->type_name("S");
  command->formatter(std::make_shared<CommandFormatter>());
  command->footer(
      "Each program sees its own node's devices only, and has RINGBOLT_NODE, RINGBOLT_NODES, and for every\n"
      "neighbour K RINGBOLT_ADDR_K (its address) and RINGBOLT_DEVICE_K (the device that leads there).\n"
      "Exit code: that of the first program that failed, 124 at the time limit, 128 + signal.\n\n" +
      shuffle_kinds() +
      "Examples:\n"
      "  ringbolt run -- ibv_devinfo\n"
      "  ringbolt run --emulate ring:3 --fault 'completion-error 1%' --timeout 60 -- ./my_rank\n"
      "  ringbolt run --nodes 0,2 --timeout 30 -- ./my_program --size 4096\n"
      "  ringbolt run --node 1 -- sh -c 'ib_send_lat -d $RINGBOLT_DEVICE_0 $RINGBOLT_ADDR_0'\n"
      "  ringbolt run --sanitize --report sarif:findings.sarif -- ./my_program\n"
      "  ringbolt run --shuffle 1-1000 -- ./my_program\n");
  command->add_flag("--remote", request.run.is_remote)->group("");
  command->callback([&request] {
    request.takes_command = true;
    request.action = [&request] { return run(request.run); };
  });
}

void define_node_commands(CLI::App& app, Request& request) {
  CLI::App* exec_command = app.add_subcommand("exec", "Become a program on one node");
  exec_command
      ->add_option("node", request.exec.node, "Number or name; \"local\" is the default device, outside clusters")
      ->required()
      ->type_name("NODE");
  add_cluster(exec_command, request.exec.cluster);
  exec_command->add_flag("--watched", request.exec.is_watched)->group("");
  exec_command->formatter(std::make_shared<CommandFormatter>());
  exec_command->footer(
      "Examples:\n  ringbolt exec 0 -- ib_send_lat\n  ringbolt exec 2 -- bash\n  ringbolt exec local -- ucx_info -d\n");
  exec_command->callback([&request] {
    request.takes_command = true;
    request.action = [&request] { return exec(request.exec); };
  });

  CLI::App* env_command = app.add_subcommand("env", "Print what a shell exports to be on a node");
  env_command->add_option("node", request.env.node, "Number or name; \"local\" is the default device, outside clusters")
      ->required()
      ->type_name("NODE");
  add_cluster(env_command, request.env.cluster);
  add_json(env_command, request.env.is_json);
  env_command->footer("Examples:\n  eval \"$(ringbolt env 0)\"\n  ringbolt env local --json\n");
  env_command->callback([&request] { request.action = [&request] { return env(request.env); }; });
}

/// How much one cable is measured: of the command, and of the processes that it starts.
void add_effort(CLI::App* command, Effort& options) {
  command->add_option("--timeout", options.timeout_s, "Give up on a cable after so many seconds")
      ->check(Real(0.1, 3600.0))
      ->capture_default_str()
      ->type_name("S");
  command->add_option("--seconds", options.phase_s, "Enough for one figure, however few rounds or messages")
      ->check(Real(0.001, 3600.0))
      ->capture_default_str()
      ->type_name("S");
  command->add_option("--size", options.size_bytes, "Bytes of a message when bandwidth is measured")
      ->transform(Whole(16, 1U << 26U))
      ->capture_default_str()
      ->type_name("BYTES");
  command->add_option("--messages", options.messages, "So many of them at most, each way")
      ->transform(Whole(1, 1'000'000))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--rounds", options.rounds, "So many round trips at most when latency is measured")
      ->transform(Whole(1, 10'000'000))
      ->capture_default_str()
      ->type_name("N");
}

void define_matrix(CLI::App& app, Request& request) {
  CLI::App* command = app.add_subcommand("matrix", "Measure latency and bandwidth between all nodes");
  add_cluster(command, request.matrix.cluster);
  add_json(command, request.matrix.is_json);
  add_thresholds(command, request.matrix.fail_if);
  command->add_option("--html", request.matrix.html_path, "Also write a page that needs nothing else")
      ->type_name("FILE");
  command->add_flag("--neighbours", request.matrix.is_neighbours,
                    "Only over cables: leave out pairs of nodes that others relay");
  add_effort(command, request.matrix);
  command->footer(
      "Latency is half the median round trip of 8-byte SENDs; bandwidth counts bytes that the receiver has and has\n"
      "verified, from the first post to the last verified byte; by RC, or UC where ports have no RC. Nodes that no "
      "cable\n"
      "joins talk through others:\n"
      "these pairs are measured by messages of a group (docs/collectives.md) on all nodes, and marked with their "
      "hops.\n"
      "Exit code 1: a cable is cut or far from its stated rate or its like ones, or something fails.\n\n"
      "Examples:\n  ringbolt matrix\n  ringbolt matrix --neighbours\n  ringbolt matrix --html matrix.html\n  ringbolt "
      "matrix --json\n");
  command->callback([&request] { request.action = [&request] { return matrix(request.matrix); }; });

  CLI::App* probe_command = app.add_subcommand("probe", "")->group("");
  probe_command->add_option("--library", request.probe.library)->required();
  probe_command->add_option("--device", request.probe.device)->required();
  pair::add_end(probe_command, request.probe);
  add_effort(probe_command, request.probe);
  CLI::App* relay_command = app.add_subcommand("relay-probe", "")->group("");
  relay_command->add_option("--members", request.relay_probe.members)
      ->transform(Whole(0, cluster::kMaxNodes - 1))
      ->delimiter(',')
      ->required();
  add_effort(relay_command, request.relay_probe);
  relay_command->callback([&request] { request.action = [&request] { return relay_probe(request.relay_probe); }; });
  probe_command->callback([&request] { request.action = [&request] { return probe(request.probe); }; });
}

void define_map(CLI::App& app, Request& request) {
  CLI::App* command = app.add_subcommand("map", "Show nodes and cables, and what goes over them, as it happens");
  add_cluster(command, request.map.cluster);
  add_json(command, request.map.is_json);
  command->add_flag("--once", request.map.is_once, "Show it once, after one interval, and end");
  command->add_option("--interval", request.map.interval_s, "Seconds from picture to picture, and that rates are of")
      ->check(Real(0.05, 3600.0))
      ->capture_default_str()
      ->type_name("S");
  command->footer(
      "On a terminal, a picture that q or Ctrl-C ends; elsewhere a line for each cable, again and again; with --json "
      "an\n"
      "object a line. Rates are bytes a second that the ports' counters have moved, errors what docs/metrics.md calls\n"
      "so. Exit code 1: a cable is cut or down.\n\n"
      "Examples:\n  ringbolt map\n  ringbolt map --once\n  ringbolt map --json --interval 5 >> map.jsonl\n");
  command->callback([&request] { request.action = [&request] { return map_run(request.map); }; });
}

void define_trace(CLI::App& app, Request& request) {
  TraceOptions& options = request.trace;
  CLI::App* command =
      app.add_subcommand("trace", "Show what programs did with their queue pairs, both ends by one clock");
  command
      ->add_option("what", options.words,
                   "Nodes, by number or name, \"local\", or files and folders with a / in them (default: all nodes)")
      ->type_name("NODE|FILE");
  add_cluster(command, options.cluster);
  add_json(command, options.is_json);
  command->add_option("--queue-pair", options.queue_pair, "Only this one and its peer, by number (0x4001)")
      ->type_name("QPN");
  command->add_option("--process", options.pid, "Only of this process, and of its peers")
      ->transform(Whole(1, INT32_MAX))
      ->type_name("PID");
  command->add_option("--since", options.since_s, "Only the last so many seconds")
      ->check(Real(0.000001, 1e7))
      ->type_name("S");
  command->add_option("--last", options.last, "So many events of each connection; 0: all")
      ->transform(Whole(0, UINT32_MAX))
      ->capture_default_str()
      ->type_name("N");
  command
      ->add_option("--chrome,--perfetto", options.chrome_path,
                   "Write it as Chrome's trace events, which Perfetto reads, too")
      ->type_name("FILE");
  command->add_option("--html", options.html_path, "Write a page that needs nothing else")->type_name("FILE");
  command->footer(
      "Programs record themselves that are started with `ringbolt run --record`, --explain or --sanitize, or with\n"
      "RINGBOLT_RECORD; what is killed or hangs leaves its timeline, too.\n\n"
      "Examples:\n"
      "  ringbolt run --record -- ./my_program\n"
      "  ringbolt trace --last 20\n"
      "  ringbolt trace 0 --queue-pair 0x4001 --since 0.5\n"
      "  ringbolt trace --perfetto trace.json\n"
      "  ringbolt trace local\n");
  command->callback([&request] { request.action = [&request] { return trace_run(request.trace); }; });
}

void define_metrics(CLI::App& app, Request& request) {
  CLI::App* command = app.add_subcommand("metrics", "Print what every port has counted, as Prometheus reads it");
  command->add_option("-c,--cluster,--name", request.metrics.cluster,
                      "Only this cluster (default: all that are up, and the ports outside clusters)");
  add_json(command, request.metrics.is_json);
  command
      ->add_option("--listen", request.metrics.listen, "Serve it at http://ADDRESS:PORT/metrics until a signal comes")
      ->type_name("ADDRESS:PORT");
  command->footer(
      "Examples:\n"
      "  ringbolt metrics\n"
      "  ringbolt metrics --cluster ring4 --json\n"
      "  ringbolt metrics --listen 127.0.0.1:9315\n");
  command->callback([&request] { request.action = [&request] { return metrics(request.metrics); }; });
}

void define_decode(CLI::App& app, Request& request) {
  CLI::App* command = app.add_subcommand("decode", "Show the packets of a capture, one a line");
  command->add_option("file", request.decode.path, "The capture")->required()->type_name("FILE");
  command->footer(
      "Takes captures of tcpdump and Wireshark (RoCEv2 and rdma_cm's messages in UDP port 4791, ICRC checked),\n"
      "text with a frame in hexadecimal digits at the end of each line (the same packets from the Ethernet or IP\n"
      "header on, frames of the native Thunderbolt verbs, frames of streams), and the bytes of a stream.\n"
      "Exit code 1: something in it is damaged or unknown.\n\n"
      "Examples:\n"
      "  sudo ringbolt exec 0 -- tcpdump -i en2 -w /tmp/en2.pcap udp port 4791\n"
      "  ringbolt decode /tmp/en2.pcap\n");
  command->callback([&request] { request.action = [&request] { return decode(request.decode); }; });
}

}  // namespace

void define_program_commands(CLI::App& app, Request& request) {
  define_run(app, request);
  define_node_commands(app, request);
  define_matrix(app, request);
  define_map(app, request);
  define_metrics(app, request);
  define_decode(app, request);
  define_trace(app, request);
}

}  // namespace ringbolt::tools
