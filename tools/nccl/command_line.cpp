#include "command_line.h"

#include "validators.h"

namespace ringbolt::tools::nccl_command {
namespace {

void add_common(CLI::App* command, NcclOptions& options) {
  command->add_option("-c,--cluster,--name", options.cluster, "Cluster (default: the only one)")->type_name("NAME");
  command->add_option("--plugin", options.plugin, "The plugin (default: the one installed with this command)")
      ->type_name("FILE");
  command->add_flag("--json", options.is_json, "Print JSON");
}

}  // namespace

void define_nccl(CLI::App& app, Request& request) {
  NcclOptions& options = request.nccl;
  CLI::App* command = app.add_subcommand("nccl", "Say what an NCCL job on this cabling needs, and try it");
  add_common(command, options);
  command->require_subcommand(0, 1);
  command->footer(
      "Prints what to export, the order of ranks in which every two neighbours share a cable, whether NCCL's own\n"
      "transport could do without the plugin, and which way messages of each pair go.\n"
      "Exit code 1: some pair has no way.\n\n"
      "Examples:\n"
      "  ringbolt nccl\n"
      "  ringbolt nccl test\n"
      "  ringbolt nccl test --emulate ring:4 --like spark\n");
  CLI::App* test = command->add_subcommand("test", "Send messages between all pairs as NCCL does, without a GPU");
  add_common(test, options);
  test->add_option("--emulate", options.emulate, "Make a cluster for this test, and take it down again")
      ->type_name("SPEC");
  test->add_option("--like", options.like, "With --emulate: profile of its devices")->type_name("PROFILE");
  test->add_option("-b,--minbytes", options.least, "Smallest size")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str()
      ->type_name("BYTES");
  test->add_option("-e,--maxbytes", options.most, "Greatest size")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str()
      ->type_name("BYTES");
  test->add_option("-f,--stepfactor", options.factor, "Multiply from size to size")
      ->transform(Whole(uint64_t{2}, uint64_t{1} << 20U))
      ->capture_default_str()
      ->type_name("N");
  add_rank(test, options);
  test->footer(
      "Times are half the mean round trip of one message; bandwidth is that of eight messages at a time, of bytes "
      "that\n"
      "the receiver has and has compared. Pairs are measured one after the other; all others relay.\n"
      "Exit code 1: something was wrong.\n\n"
      "Examples:\n"
      "  ringbolt nccl test --emulate ring:4 --like spark\n"
      "  ringbolt nccl test -b 8 -e 64M -f 8\n");
  test->callback([&request] { request.action = [&request] { return nccl_test(request.nccl); }; });
  command->callback([command, &request] {
    if (command->get_subcommands().empty()) {
      request.action = [&request] { return nccl_plan(request.nccl); };
    }
  });
}

}  // namespace ringbolt::tools::nccl_command
