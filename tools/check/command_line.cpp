#include "command_line.h"

#include <CLI/CLI.hpp>

#include "validators.h"

namespace ringbolt::tools::check {
namespace {

void add_what(CLI::App* command, CheckOptions& options) {
  CLI::Option* scale =
      command
          ->add_option("--scale", options.scale,
                       "Sizes: full (1, 100 and 512 MiB a rank), ci (small), or a part of full (default: ci)")
          ->type_name("full|ci|F");
  command->add_flag("--in-place", options.is_in_place, "Output where the input is");
  CLI::Option* matrix = command->add_flag(
      "--matrix", options.is_matrix, "Instead: all collectives, types, reductions, algorithms, odd counts and roots");
  matrix->excludes(scale);  // --largest is the matrix's
  command->add_flag("--thorough", options.is_thorough, "Of the matrix: every combination")->needs(matrix);
  command->add_option("--only", options.collectives, "Of the matrix: these collectives")
      ->delimiter(',')
      ->type_name("NAME[,NAME...]")
      ->needs(matrix);
  command->add_option("--largest", options.largest_bytes, "Of the matrix: bytes of the largest count")
      ->transform(Whole(uint64_t{1}, uint64_t{1} << 32U))
      ->capture_default_str()
      ->type_name("BYTES")
      ->needs(matrix);
  command->add_option("--repeat", options.repeats, "Make every call so many times; all must give the same bits")
      ->transform(Whole(1U, 100'000U))
      ->capture_default_str()
      ->type_name("N");
}

void add_how(CLI::App* command, CheckOptions& options) {
  command->add_option("--algorithm", options.algorithm, "By this one alone (default: the fastest; of the matrix: each)")
      ->type_name("NAME");
  command->add_flag("--fast", options.is_fast, "Let sums be taken in any order");
  command->add_option("--verbs,--library", options.verbs, "Verbs library: auto, system, soft, or a path")
      ->type_name("LIB");
  command
      ->add_option("--rank-order", options.order_seed,
                   "Shuffle which node is which rank, by this number (default: as nodes are numbered)")
      ->transform(Whole(0, UINT64_MAX))
      ->type_name("SEED");
  command->add_option("--deadline", options.deadline_s, "Of one call (default: 10 s, and its bytes at 25 MB/s)")
      ->check(Real(0.001, 1e6))
      ->type_name("S");
  command->add_option("-c,--cluster,--name", options.cluster, "Cluster to run on (default: the only one)")
      ->type_name("NAME");
  command->add_option("--timeout", options.timeout_s, "End everything after so many seconds")
      ->check(Real(0.001, 1e6))
      ->type_name("S");
  command->add_flag("--json", options.is_json, "Print JSON");
  add_rank(command, options);
}

}  // namespace

void define_check(CLI::App& app, Request& request) {
  CheckOptions& options = request.check;
  CLI::App* command = app.add_subcommand("check", "Prove that collectives give the right bits on every rank");
  add_what(command, options);
  add_how(command, options);
  command->footer(
      "Runs itself on all nodes of the cluster; started by a launcher that says which rank it is, it is that rank.\n"
      "54 collectives: all_sum and all_gather, three sizes, three patterns, three rounds, float32. Every byte is\n"
      "compared with what this rank computes by itself. Exit code 1: something was wrong.\n\n"
      "Examples:\n"
      "  ringbolt check\n"
      "  ringbolt check --scale full --json\n"
      "  ringbolt check --matrix --largest 65536\n"
      "  ringbolt check --matrix --only all_reduce,reduce --repeat 100\n"
      "  mpirun -n 4 ringbolt check\n");
  command->callback([&request] { request.action = [&request] { return check_run(request.check); }; });
}

}  // namespace ringbolt::tools::check
