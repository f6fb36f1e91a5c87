#include "command_line.h"

#include <CLI/CLI.hpp>
#include <string>

#include "cluster/limits.h"
#include "fabric/shape.h"
#include "validators.h"

namespace ringbolt::tools::plan {
namespace {

void add_what(CLI::App* command, PlanOptions& options) {
  CLI::Option* file =
      command
          ->add_option("spec", options.file,
                       "Judge a cabling instead: a topology as up --emulate takes it, or a cluster file")
          ->type_name("SPEC|FILE");
  command->add_option("-n,--nodes", options.nodes, "How many machines")
      ->transform(Whole(2, fabric::kMostPlannedNodes))
      ->type_name("N")
      ->excludes(file);
  command->add_option("-p,--ports", options.ports, "Ports of each that may take a cable")
      ->transform(Whole(1, fabric::kMostPlannedPorts))
      ->type_name("P")
      ->excludes(file);
  command->add_option("--shape", options.shape, "A cabling of your choice (default: the best known)")
      ->type_name("NAME")
      ->excludes(file);
  command->add_option("--speed", options.speed_gbps, "Of every cable, each way, in Gbit/s (default: 40)")
      ->transform(Whole(1, cluster::kMaxSpeedGbps))
      ->type_name("GBPS")
      ->excludes(file);
  command
      ->add_option("--like", options.like,
                   "Machines like these (of no file: name ports as they do): tn3205, apple, usb4-linux, spark")
      ->type_name("PROFILE");
  command->add_option("--alpha", options.alpha_us, "What one hop costs a message, for the predicted times")
      ->check(Real(0.001, 1e6))
      ->capture_default_str()
      ->type_name("US");
  command->add_option("--relays", options.relays, "These nodes only relay: say what the group of the others can do")
      ->delimiter(',')
      ->type_name("NODE[,NODE...]");
  command->add_option("--prefix-length", options.prefix_length, "Of the subnet of each cable")
      ->check(OneOf({"24", "30"}))
      ->capture_default_str()
      ->type_name("BITS");
  command->add_option("--routing", options.routing, "How relays keep from deadlock (default: auto)")
      ->check(OneOf({"auto", "shortest", "hop-classes", "dateline", "up-down"}))
      ->type_name("WAY");
}

void add_output(CLI::App* command, PlanOptions& options) {
  command->add_flag("--json", options.is_json, "Print JSON");
  command->add_flag("--dot", options.is_dot, "Print the graph for Graphviz");
  command->add_option("--svg", options.svg_path, "Also write a picture (\"-\": print it alone)")->type_name("FILE");
  command
      ->add_option("--cluster-file", options.cluster_path,
                   "Also write a cluster file, for up --emulate (\"-\": print it alone)")
      ->type_name("FILE");
  command->add_flag("--explain", options.explains, "Say why, and what each bound means");
  command->add_flag("--check", options.is_checked,
                    "Prove that the routes are free of deadlock; print the proof, or a cycle (exit code 1)");
}

}  // namespace

void define_plan(CLI::App& app, Request& request) {
  PlanOptions& options = request.plan;
  CLI::App* command = app.add_subcommand("plan", "Plan which cable goes where, or judge a cabling");
  add_what(command, options);
  add_output(command, options);
  command->footer("Shapes: " + fabric::known_shapes() +
                  "\n\nRates are bounds, times are computed from --speed and --alpha: nothing is measured.\n"
                  "Exit code 1: the cabling does not join all nodes, or the check fails.\n\n"
                  "Examples:\n"
                  "  ringbolt plan --nodes 10 --ports 3\n"
                  "  ringbolt plan --nodes 4 --ports 3 --speed 80 --like apple --explain\n"
                  "  ringbolt plan --nodes 9 --ports 4 --shape torus:3x3 --check\n"
                  "  ringbolt plan --nodes 8 --ports 3 --cluster-file eight.json && ringbolt up --emulate eight.json\n"
                  "  ringbolt plan examples/clusters/two-rails.json\n"
                  "  ringbolt plan torus:4x4\n");
  command->callback([&request] { request.action = [&request] { return plan_run(request.plan); }; });
}

}  // namespace ringbolt::tools::plan
