#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cluster/limits.h"
#include "cluster/topology.h"
#include "commands.h"
#include "failure.h"
#include "fault/plan_words.h"
#include "host_node.h"
#include "perf/command_line.h"
#include "plan/command_line.h"
#include "verify/command_line.h"
#include "version.h"

namespace ringbolt::tools {
namespace {

/// What the command line asks for: which subcommand, and its options.
struct Request {
  UpOptions up;
  DownOptions down;
  RebootOptions reboot;
  ListOptions list;
  RunOptions run;
  ExecOptions exec;
  EnvOptions env;
  CableOptions cable;
  FaultOptions fault;
  DecodeOptions decode;
  MetricsOptions metrics;
  MatrixOptions matrix;
  PerfOptions perf;
  PlanOptions plan;
  VerifyOptions verify;
  ProbeOptions probe;
  HostOptions host;
  std::function<int()> action;
  bool takes_command = false;  ///< words after "--" belong to it
};

/// Help of subcommands that take a command line after "--".
class CommandFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    while (!usage.empty() && usage.back() == '\n') {
      usage.pop_back();
    }
    return usage + " -- COMMAND [ARGUMENTS]\n";
  }
};

void add_cluster(CLI::App* command, std::string& cluster) {
  command->add_option("-c,--cluster,--name", cluster,
                      "The cluster (default: $RINGBOLT_CLUSTER, else the only one that is up)");
}

void add_json(CLI::App* command, bool& is_json) { command->add_flag("--json", is_json, "Print JSON"); }

void define_state_commands(CLI::App& app, Request& request) {
  CLI::App* up_command =
      app.add_subcommand("up", "Make a cluster: emulated, of network namespaces, or of real machines");
  CLI::Option* spec =
      up_command->add_option("--emulate,spec", request.up.spec, "A topology or the path of a cluster file")
          ->type_name("SPEC|FILE");
  up_command
      ->add_option("--hosts", request.up.hosts, "Real machines that ssh reaches, or a cluster file that names them")
      ->type_name("FILE|A,B,...")
      ->excludes(spec);
  up_command->add_option("--name", request.up.name, "Name of the cluster (default: from the topology or the file)");
  up_command->add_flag("--netns", request.up.is_netns,
                       "Make every node a network namespace, every cable a pair of interfaces (needs root)");
  up_command->add_option("--mtu", request.up.mtu, "Of the interfaces of --netns (default: 9000)")
      ->check(CLI::Range(cluster::kMinMtu, cluster::kMaxMtu))
      ->type_name("BYTES");
  up_command->add_option("--like", request.up.like, "Whose limits the devices take on: tn3205, apple, usb4-linux, spark")
      ->type_name("PROFILE");
  up_command->add_option("--rate", request.up.rate, "Hold every cable of --netns to a rate")->type_name("RATE");
  up_command
      ->add_option("--prefix", request.up.prefix, "Where Ringbolt is installed on --hosts (default: where it is here)")
      ->type_name("FOLDER");
  up_command
      ->add_option("--over", request.up.over,
                   "What joins --hosts A,B,...: streams (Thunderbolt, /dev/tbstreamN), network interfaces, or auto: streams "
                   "if a host has them")
      ->check(CLI::IsMember({"auto", "streams", "network"}))
      ->type_name("WAY");
  up_command->add_flag("--apply", request.up.is_applied,
                       "Make the Thunderbolt streams that --hosts A,B,... lack (as root there, or sudo -n); down takes them "
                       "away again. Without it, the commands are printed");
  up_command->footer("Topologies: " + cluster::known_topologies() +
                     "\n\nExamples:\n"
                     "  ringbolt up --emulate ring:4\n"
                     "  ringbolt up --emulate torus:3x3 --name t\n"
                     "  ringbolt up --emulate mesh:4 --like apple,gid=2\n"
                     "  ringbolt up --emulate examples/clusters/two-rails.json\n"
                     "  sudo ringbolt up --netns --emulate ring:4 --rate 2.5Gbit\n"
                     "  ringbolt up --hosts mac1,mac2,mac3\n"
                     "  ringbolt up --hosts box1,box2 --over streams --apply\n");
  up_command->callback([&request] { request.action = [&request] { return up(request.up); }; });

  CLI::App* down_command = app.add_subcommand("down", "Remove a cluster");
  add_cluster(down_command, request.down.cluster);
  down_command->add_flag("--force", request.down.is_forced, "Also while programs run in it: they lose every cable");
  down_command->footer("Examples:\n  ringbolt down\n  ringbolt down --cluster ring4 --force\n");
  down_command->callback([&request] { request.action = [&request] { return down(request.down); }; });

  CLI::App* reboot_command = app.add_subcommand("reboot", "Give back what dead programs have left on a node's devices");
  add_cluster(reboot_command, request.reboot.cluster);
  reboot_command->add_option("node", request.reboot.node, "Number or name; \"local\" is the default device")
      ->required()
      ->type_name("NODE");
  reboot_command->add_flag("--force", request.reboot.is_forced, "Also while programs hold objects: kill them");
  reboot_command->footer("For devices that are like a Mac with leak=boot.\n\nExamples:\n  ringbolt reboot 2\n"
                         "  ringbolt reboot local --force\n");
  reboot_command->callback([&request] { request.action = [&request] { return reboot(request.reboot); }; });

  CLI::App* status_command = app.add_subcommand("status", "Show clusters, their cables and the programs that run");
  add_cluster(status_command, request.list.cluster);
  add_json(status_command, request.list.is_json);
  status_command->footer(
      "Exit code 1: some state is stale.\n\nExamples:\n  ringbolt status\n  ringbolt status --json\n");
  status_command->callback([&request] { request.action = [&request] { return status(request.list); }; });

  CLI::App* devices_command = app.add_subcommand("devices", "Show every node's devices and where they lead");
  add_cluster(devices_command, request.list.cluster);
  add_json(devices_command, request.list.is_json);
  devices_command->footer("Examples:\n  ringbolt devices\n  ringbolt devices --cluster ring4 --json\n");
  devices_command->callback([&request] { request.action = [&request] { return devices(request.list); }; });
}

void define_cable_commands(CLI::App& app, Request& request) {
  const struct {
    const char* name;
    const char* what;
    int (*act)(const CableOptions&);
  } commands[] = {{"cut", "Pull a cable, also under running programs", cut}, {"heal", "Plug a cable back in", heal}};
  for (const auto& one : commands) {
    CLI::App* command = app.add_subcommand(one.name, one.what);
    command->add_option("cable", request.cable.cable, "The two ends: nodes, or ports where cables are parallel")
        ->required()
        ->type_name("A-B|A:PORT-B:PORT");
    add_cluster(command, request.cable.cluster);
    command->footer(fmt::format("Examples:\n  ringbolt {0} 1-2\n  ringbolt {0} n0:rdma_en2-n1:rdma_en3\n", one.name));
    command->callback([&request, act = one.act] { request.action = [&request, act] { return act(request.cable); }; });
  }
}

void define_fault(CLI::App& app, Request& request) {
  CLI::App* command = app.add_subcommand("fault", "Do to programs what cables and devices do, on purpose");
  command->require_subcommand(1);
  command->footer(
      "A fault is KIND [CHANCE] [KEY VALUE]...; kinds: " + fault::kind_names() + ".\n"
      "docs/faults.md has the words. Programs that run suffer it at once.\n\n"
      "Examples:\n"
      "  ringbolt fault add loss 1% seed 7\n"
      "  ringbolt fault add delay 100% by 2ms jitter 500us cable 0-1\n"
      "  ringbolt fault list\n"
      "  ringbolt fault clear\n");
  CLI::App* add = command->add_subcommand("add", "Add a fault");
  add->add_option("fault", request.fault.words, "Its words: KIND [CHANCE] [KEY VALUE]...")->type_name("WORD...");
  add->add_option("--file", request.fault.file, "Add all faults of a file, one a line")->type_name("FILE");
  add_cluster(add, request.fault.cluster);
  add->footer(
      "Examples:\n  ringbolt fault add loss 1%\n  ringbolt fault add corrupt 0.1% node n1 port rdma_en2 direction "
      "receive\n");
  add->callback([&request] { request.action = [&request] { return fault_add(request.fault); }; });

  CLI::App* list = command->add_subcommand("list", "Show the faults in effect");
  add_cluster(list, request.fault.cluster);
  add_json(list, request.fault.is_json);
  list->callback([&request] { request.action = [&request] { return fault_list(request.fault); }; });

  CLI::App* clear = command->add_subcommand("clear", "Remove faults");
  clear->add_option("number", request.fault.numbers, "As list shows them (default: all)")->type_name("N...");
  add_cluster(clear, request.fault.cluster);
  clear->callback([&request] { request.action = [&request] { return fault_clear(request.fault); }; });
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

void define_run(CLI::App& app, Request& request) {
  CLI::App* command = app.add_subcommand("run", "Run a program on every node, or on some");
  add_cluster(command, request.run.cluster);
  command->add_option("--nodes,--node", request.run.nodes, "Nodes, by number or name (default: all)")
      ->delimiter(',')
      ->type_name("K[,K...]");
  CLI::Option* tag =
      command->add_flag("--tag", request.run.is_tagged, "Prefix output with the node even if there is one");
  command->add_flag("--no-tag", request.run.is_untagged, "Never prefix output")->excludes(tag);
  command->add_flag("--keep-going", request.run.keeps_going, "Let the others run when a node fails");
  command->add_option("--timeout", request.run.timeout_s, "End everything after so many seconds")->type_name("S");
  command->formatter(std::make_shared<CommandFormatter>());
  command->footer(
      "Each program sees its own node's devices only, and has RINGBOLT_NODE, RINGBOLT_NODES, and for every\n"
      "neighbour K RINGBOLT_ADDR_K (its address) and RINGBOLT_DEVICE_K (the device that leads there).\n"
      "Exit code: that of the first program that failed, 124 at the time limit, 128 + signal.\n\n"
      "Examples:\n"
      "  ringbolt run -- ibv_devinfo\n"
      "  ringbolt run --nodes 0,2 --timeout 30 -- ./my_program --size 4096\n"
      "  ringbolt run --node 1 -- sh -c 'ib_send_lat -d $RINGBOLT_DEVICE_0 $RINGBOLT_ADDR_0'\n");
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

void define_metrics(CLI::App& app, Request& request) {
  CLI::App* command = app.add_subcommand("metrics", "Print what every port has counted, as Prometheus reads it");
  command->add_option("-c,--cluster,--name", request.metrics.cluster,
                      "Only this cluster (default: all that are up, and the ports outside clusters)");
  add_json(command, request.metrics.is_json);
  command->add_option("--listen", request.metrics.listen, "Serve it at http://ADDRESS:PORT/metrics until a signal comes")
      ->type_name("ADDRESS:PORT");
  command->footer(
      "Examples:\n"
      "  ringbolt metrics\n"
      "  ringbolt metrics --cluster ring4 --json\n"
      "  ringbolt metrics --listen 127.0.0.1:9315\n");
  command->callback([&request] { request.action = [&request] { return metrics(request.metrics); }; });
}

void define_matrix(CLI::App& app, Request& request) {
  CLI::App* command = app.add_subcommand("matrix", "Measure latency and bandwidth between all neighbours");
  add_cluster(command, request.matrix.cluster);
  add_json(command, request.matrix.is_json);
  command->add_option("--html", request.matrix.html_path, "Also write a page that needs nothing else")
      ->type_name("FILE");
  command->add_option("--timeout", request.matrix.timeout_s, "Give up on a cable after so many seconds")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str()
      ->type_name("S");
  command->add_option("--seconds", request.matrix.phase_s, "Enough for one figure, however few rounds or messages")
      ->check(CLI::Range(0.001, 3600.0))
      ->capture_default_str()
      ->type_name("S");
  command->add_option("--size", request.matrix.size_bytes, "Bytes of a message when bandwidth is measured")
      ->check(CLI::Range(16U, 1U << 26U))
      ->capture_default_str()
      ->type_name("BYTES");
  command->add_option("--messages", request.matrix.messages, "So many of them at most, each way")
      ->check(CLI::Range(1U, 1'000'000U))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--rounds", request.matrix.rounds, "So many round trips at most when latency is measured")
      ->check(CLI::Range(1U, 10'000'000U))
      ->capture_default_str()
      ->type_name("N");
  command->footer(
      "Latency is half the median round trip of 8-byte RC SENDs; bandwidth counts bytes that the receiver has\n"
      "and has verified, from the first post to the last verified byte. Exit code 1: a cable is cut or fails.\n\n"
      "Examples:\n  ringbolt matrix\n  ringbolt matrix --html matrix.html\n  ringbolt matrix --json\n");
  command->callback([&request] { request.action = [&request] { return matrix(request.matrix); }; });

  CLI::App* probe_command = app.add_subcommand("probe", "")->group("");
  probe_command->add_option("--library", request.probe.library)->required();
  probe_command->add_option("--device", request.probe.device)->required();
  probe_command->add_flag("--first", request.probe.is_first);
  probe_command->add_option("--channel", request.probe.channel_fd);
  probe_command->add_option("--timeout", request.probe.timeout_s);
  probe_command->add_option("--seconds", request.probe.phase_s);
  probe_command->add_option("--size", request.probe.size_bytes);
  probe_command->add_option("--messages", request.probe.messages);
  probe_command->add_option("--rounds", request.probe.rounds);
  probe_command->callback([&request] { request.action = [&request] { return probe(request.probe); }; });
}

/// What a host of `up --hosts` is asked by the machine that commands.
void define_host(CLI::App& app, Request& request) {
  app.add_option("--host-node", request.host.node)->group("");
  CLI::App* command = app.add_subcommand("host", "")->group("");
  command->add_option("action", request.host.action)->required();
  command->add_option("cable", request.host.cable);
  command->add_flag("--up,!--down", request.host.is_up);
  command->add_flag("--force", request.host.is_forced);
  command->callback([&request] { request.action = [&request] { return host(request.host); }; });
}

/// The name to put before messages: "ringbolt up".
std::string command_name(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? "ringbolt" : "ringbolt " + chosen.front()->get_name();
}

int act(const CLI::App& app, Request& request, std::vector<std::string> command, bool has_command) {
  if (request.takes_command && command.empty()) {
    throw UsageError("say what to run, after --; for example: " + command_name(app) +
                     (app.got_subcommand("exec") ? " 0" : "") + " -- ibv_devinfo");
  }
  if (!request.takes_command && has_command) {
    throw UsageError("takes no command: leave out what follows --");
  }
  if (!request.host.node.empty()) {
    enter_host_node(request.host.node);
  }
  request.run.command = command;
  request.exec.command = std::move(command);
  return request.action();
}

int main_inside(int argc, char** argv) {
  // What follows "--" is somebody else's command line: CLI11 does not get to see it.
  char** const end = argv + argc;
  char** const dashes = std::find_if(argv, end, [](const char* word) { return std::string(word) == "--"; });
  const bool has_command = dashes != end;
  const std::vector<std::string> command(has_command ? dashes + 1 : end, end);

  CLI::App app("RDMA on machines without RDMA hardware, and on emulated clusters of them.", "ringbolt");
  app.set_version_flag("--version", std::string("ringbolt ") + kVersion);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done, 1 a problem was found, 2 wrong usage or bad input.\n\n"
      "Examples:\n"
      "  ringbolt plan --nodes 10 --ports 3\n"
      "  ringbolt up --emulate ring:4\n"
      "  ringbolt run -- ibv_devinfo\n"
      "  ringbolt exec 0 -- ib_send_lat -d rdma_en2 &\n"
      "  ringbolt exec 1 -- sh -c 'ib_send_lat -d $RINGBOLT_DEVICE_0 $RINGBOLT_ADDR_0'\n"
      "  ringbolt matrix\n"
      "  ringbolt verify soak --nodes 0,1 -D 60\n"
      "  ringbolt cut 1-2\n"
      "  ringbolt down\n"
      "\n`ringbolt COMMAND --help` says more.\n");
  Request request;
  define_state_commands(app, request);
  define_run(app, request);
  define_node_commands(app, request);
  define_matrix(app, request);
  define_metrics(app, request);
  perf::define_perf(app, request.perf,
                    [&request] { request.action = [&request] { return perf_run(request.perf); }; });
  plan::define_plan(app, request.plan,
                    [&request] { request.action = [&request] { return plan_run(request.plan); }; });
  verify::define_verify(app, request.verify,
                        [&request] { request.action = [&request] { return verify_run(request.verify); }; });
  define_cable_commands(app, request);
  define_fault(app, request);
  define_decode(app, request);
  define_host(app, request);
  try {
    app.parse(static_cast<int>(dashes - argv), argv);
  } catch (const CLI::ParseError& error) {
    if (app.get_subcommands().empty() && argc > 1 && argv[1][0] != '-') {
      fmt::print(stderr, "ringbolt: \"{}\" is no command; `ringbolt --help` lists them\n", argv[1]);
      return kWrongUsage;
    }
    return app.exit(error) == 0 ? kOk : kWrongUsage;
  }
  try {
    return act(app, request, command, has_command);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    fmt::print(stderr, "{}: {}\n", command_name(app), error.what());
    return kWrongUsage;
  }
}

}  // namespace
}  // namespace ringbolt::tools

int main(int argc, char** argv) { return ringbolt::tools::main_inside(argc, argv); }
