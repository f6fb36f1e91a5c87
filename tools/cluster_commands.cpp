#include <string>

#include <CLI/CLI.hpp>

#include "cluster/limits.h"
#include "cluster/topology.h"
#include "command_line.h"
#include "fault/plan_words.h"
#include "validators.h"

namespace ringbolt::tools {
namespace {

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
  up_command->add_option("--name", request.up.name, "Name of the cluster (default: from the topology or the file)")
      ->check(objection_to_empty);
  up_command->add_flag("--netns", request.up.is_netns,
                       "Make every node a network namespace, every cable a pair of interfaces (needs root)");
  up_command->add_flag("!--no-management", request.up.has_management,
                       "With --netns: leave out the network beside the cables, by which all nodes reach each other");
  up_command->add_option("--mtu", request.up.mtu, "Of the interfaces of --netns (default: 9000)")
      ->transform(Whole(cluster::kMinMtu, cluster::kMaxMtu))
      ->type_name("BYTES");
  up_command->add_flag("--overlay", request.up.has_overlay,
                       "Start an agent per node: programs get the device ringbolt0, on which every node reaches every "
                       "other over the cables between");
  up_command
      ->add_option("--like", request.up.like, "Whose limits the devices take on: tn3205, apple, usb4-linux, spark")
      ->type_name("PROFILE");
  up_command->add_option("--rate", request.up.rate, "Hold every cable of --netns to a rate")->type_name("RATE");
  up_command
      ->add_option("--prefix", request.up.prefix, "Where Ringbolt is installed on --hosts (default: where it is here)")
      ->type_name("FOLDER");
  up_command
      ->add_option(
          "--over", request.up.over,
          "What joins --hosts A,B,...: streams (Thunderbolt, /dev/tbstreamN), network interfaces, or auto: streams "
          "if a host has them")
      ->check(OneOf({"auto", "streams", "network"}))
      ->type_name("WAY");
  up_command->add_flag(
      "--apply", request.up.is_applied,
      "Make the Thunderbolt streams that --hosts A,B,... lack (as root there, or sudo -n); down takes them "
      "away again. Without it, the commands are printed");
  up_command->footer("Topologies: " + cluster::known_topologies() +
                     "\n\nExamples:\n"
                     "  ringbolt up --emulate ring:4\n"
                     "  ringbolt up --emulate torus:3x3 --name t\n"
                     "  ringbolt up --emulate mesh:4 --like apple,gid=2\n"
                     "  ringbolt up --emulate examples/clusters/two-rails.json\n"
                     "  ringbolt up --emulate ring:4 --overlay\n"
                     "  sudo ringbolt up --netns --emulate ring:4 --rate 2.5Gbit\n"
                     "  ringbolt up --hosts mac1,mac2,mac3\n"
                     "  ringbolt up --hosts box1,box2 --over streams --apply\n");
  up_command->callback([&request] { request.action = [&request] { return up(request.up); }; });

  CLI::App* agent_command = app.add_subcommand("agent", "Serve the overlay device ringbolt0 of one node");
  add_cluster(agent_command, request.agent.cluster);
  agent_command->add_option("--node", request.agent.node, "Number or name (default: RINGBOLT_NODE)")->type_name("NODE");
  agent_command->add_flag(
      "--start", request.agent.starts_missing,
      "Start the agents of the cluster that are missing, in the background, and return when they have met the others");
  agent_command
      ->add_option("--ready-fd", request.agent.ready_fd, "Gets a line when it has begun, and one when it serves")
      ->transform(Whole(0, INT32_MAX))
      ->group("");
  agent_command->footer(
      "`ringbolt up --overlay` starts one on every node, and `ringbolt down` ends them.\n\nExamples:\n"
      "  ringbolt agent --start\n");
  agent_command->callback([&request] { request.action = [&request] { return agent_run(request.agent); }; });

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
  reboot_command->footer(
      "For devices that are like a Mac with leak=boot.\n\nExamples:\n  ringbolt reboot 2\n"
      "  ringbolt reboot local --force\n");
  reboot_command->callback([&request] { request.action = [&request] { return reboot(request.reboot); }; });

  CLI::App* status_command = app.add_subcommand("status", "Show clusters, their cables and the programs that run");
  add_cluster(status_command, request.list.cluster);
  add_json(status_command, request.list.is_json);
  status_command->add_flag("--all", request.list.is_all, "List every cable, also where there are more than 100");
  status_command->footer(
      "Of more than 100 cables those that are cut are listed. Exit code 1: some state is stale, a program stands still "
      "behind a cut cable, or one has failed while the others of its run go on.\n\nExamples:\n  ringbolt status\n  "
      "ringbolt status --json\n");
  status_command->callback([&request] { request.action = [&request] { return status(request.list); }; });

  CLI::App* devices_command = app.add_subcommand("devices", "Show every node's devices and where they lead");
  add_cluster(devices_command, request.list.cluster);
  add_json(devices_command, request.list.is_json);
  devices_command->footer("Examples:\n  ringbolt devices\n  ringbolt devices --cluster ring4 --json\n");
  devices_command->callback([&request] { request.action = [&request] { return devices(request.list); }; });
}

void define_hostfile(CLI::App& app, Request& request) {
  CLI::App* command = app.add_subcommand("hostfile", "Write a cluster as MLX and JACCL read it, or judge such a file");
  command->add_option("--format", request.hostfile.format, "mlx, mlx-v1, mlx-ring, or jaccl: the device file alone")
      ->check(OneOf({"mlx", "mlx-v1", "mlx-ring", "jaccl"}))
      ->type_name("FORMAT");
  command
      ->add_option("--backend", request.hostfile.backend, "jaccl, jaccl-ring: only what a ring uses, or ring: of TCP")
      ->check(OneOf({"jaccl", "jaccl-ring", "ring"}))
      ->type_name("BACKEND");
  CLI::Option* output =
      command->add_option("-o,--output", request.hostfile.path, "Where to write it (default: stdout)");
  output->type_name("FILE");
  command
      ->add_option("--check", request.hostfile.checked_path,
                   "Say what is in such a file (with --format: of that format)")
      ->check(objection_to_empty)
      ->type_name("FILE")
      ->excludes(output);
  add_cluster(command, request.hostfile.cluster);
  add_json(command, request.hostfile.is_json);
  command->footer(
      "Exit code 1: the file is none of these, or something in it is probably wrong.\n\nExamples:\n"
      "  ringbolt hostfile -o hosts.json\n"
      "  ringbolt hostfile --format jaccl -o devices.json\n"
      "  JACCL_IBV_DEVICES=$PWD/devices.json ringbolt run -- ringbolt check\n"
      "  ringbolt hostfile --check hosts.json\n");
  command->callback([&request] { request.action = [&request] { return hostfile(request.hostfile); }; });
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
  command->footer("A fault is KIND [CHANCE] [KEY VALUE]...; kinds: " + fault::kind_names() +
                  ".\n"
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
  list->footer("Examples:\n  ringbolt fault list\n");
  list->callback([&request] { request.action = [&request] { return fault_list(request.fault); }; });

  CLI::App* clear = command->add_subcommand("clear", "Remove faults");
  clear->add_option("number", request.fault.numbers, "As list shows them (default: all)")
      ->transform(Whole(1, fault::Plan::kMaxRules))
      ->type_name("N...");
  add_cluster(clear, request.fault.cluster);
  clear->footer("Examples:\n  ringbolt fault clear\n  ringbolt fault clear 2\n");
  clear->callback([&request] { request.action = [&request] { return fault_clear(request.fault); }; });
}

/// What a host of `up --hosts` is asked by the machine that commands.
void define_host(CLI::App& app, Request& request) {
  app.add_option("--host-node", request.host.node)->group("");
  CLI::App* command = app.add_subcommand("host", "")->group("");
  command->add_option("action", request.host.action)->required();
  command->add_option("cable", request.host.cable)->transform(Whole(0, cluster::kMaxCables - 1));
  command->add_flag("--up,!--down", request.host.is_up);
  command->add_flag("--force", request.host.is_forced);
  command->callback([&request] { request.action = [&request] { return host(request.host); }; });
}

}  // namespace

void add_cluster(CLI::App* command, std::string& cluster) {
  command->add_option("-c,--cluster,--name", cluster,
                      "The cluster (default: $RINGBOLT_CLUSTER, else the only one that is up)");
}

void add_rank(CLI::App* command, RankOptions& options) {
  command->add_flag("--as-rank", options.is_rank)->group("");
  command->add_flag("--tell-progress", options.tells_progress)->group("");
  command->add_option("--of", options.n_ranks)->group("")->transform(Whole(1U, UINT32_MAX));
}

void add_json(CLI::App* command, bool& is_json) { command->add_flag("--json", is_json, "Print JSON"); }

void add_thresholds(CLI::App* command, std::vector<std::string>& texts) {
  command
      ->add_option("--fail-if", texts,
                   "Exit with 1 if a number of --json, or one that is missing there, is beyond, as 'p99_us>20'")
      ->take_all()
      ->type_name("KEY<BOUND")
      ->allow_extra_args(false);
}

void define_cluster_commands(CLI::App& app, Request& request) {
  define_state_commands(app, request);
  define_hostfile(app, request);
  define_cable_commands(app, request);
  define_fault(app, request);
  define_host(app, request);
}

}  // namespace ringbolt::tools
