#include "command_line.h"

#include <CLI/CLI.hpp>
#include <string>

#include "validators.h"

namespace ringbolt::tools::doctor {

void define_doctor(CLI::App& app, Request& request) {
  DoctorOptions& options = request.doctor;
  CLI::App* command =
      app.add_subcommand("doctor", "Find what is wrong with machines, cables and settings, and what mends it");
  CLI::Option* hosts = command->add_option("--hosts", options.hosts,
                                           "Machines that ssh reaches, or a cluster file or hostfile that names them");
  hosts->type_name("FILE|A,B,...")->check(objection_to_empty);
  CLI::Option* cluster =
      command->add_option("-c,--cluster,--name", options.cluster, "The nodes of a cluster that is up");
  cluster->check(objection_to_empty)->excludes(hosts);
  CLI::Option* from = command->add_option("--from", options.from,
                                          "Judge what was read before: a recording, a folder of them, or the outputs "
                                          "of a Mac's tools (\"-\": standard input)");
  from->type_name("FILE|FOLDER")->check(objection_to_empty)->excludes(cluster);
  command
      ->add_option("--bundle", options.bundle_path,
                   "Also write what was read, without names and secrets, to attach it somewhere")
      ->type_name("FILE");
  command->add_option("--apply", options.apply, "Mend the findings of this check: shows the commands and asks")
      ->type_name("ID")
      ->check(objection_to_empty)
      ->excludes(from);
  command->add_flag("--yes", options.is_agreed, "With --apply: do not ask");
  command->add_flag("--list", options.lists, "Print all checks");
  command->add_flag("--script", options.prints_script,
                    "Print the script that reads a machine, to look at it or to run it where ssh can't");
  command->add_option("--html", options.html_path, "Also write a page that needs nothing else")->type_name("FILE");
  command->add_option("--timeout", options.timeout_s, "Give up on a machine after so many seconds")
      ->check(Real(1, 600))
      ->capture_default_str()
      ->type_name("S");
  command->add_flag("--json", options.is_json, "Print JSON");
  command->footer(
      "Reads only. Without --hosts or --cluster it looks at this machine. Findings that explain others come first; "
      "what could\n"
      "not be read is never called healthy.\n"
      "Exit code 1: an error or a warning was found (or --apply has left something).\n\n"
      "Examples:\n"
      "  ringbolt doctor\n"
      "  ringbolt doctor --hosts box1,box2\n"
      "  ringbolt doctor --hosts hosts.json --bundle bundle.txt\n"
      "  ringbolt doctor --hosts box1,box2 --apply mtu-differs\n"
      "  ssh mac1 sh < <(ringbolt doctor --script) | ringbolt doctor --from -\n");
  command->callback([&request] { request.action = [&request] { return doctor_run(request.doctor); }; });
}

}  // namespace ringbolt::tools::doctor
