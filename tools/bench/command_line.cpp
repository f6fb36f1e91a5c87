#include "command_line.h"

#include <CLI/CLI.hpp>

#include "validators.h"

namespace ringbolt::tools::bench {
namespace {

constexpr uint32_t kMostCalls = 10'000'000;

void add_nccl_options(CLI::App* command, BenchOptions& options) {
  command->add_option("-b,--minbytes", options.least, "Smallest size")
      ->each([&options](const std::string&) { options.has_least = true; })
      ->capture_default_str()
      ->type_name("BYTES");
  command->add_option("-e,--maxbytes", options.most, "Greatest size (default: 4M, or -b)")->type_name("BYTES");
  command->add_option("-i,--stepbytes", options.step, "Add so much from size to size (default: multiply)")
      ->type_name("BYTES");
  command->add_option("-f,--stepfactor", options.factor, "Multiply from size to size")
      ->transform(Whole(uint64_t{2}, uint64_t{1} << 20U))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("-n,--iters", options.iterations, "Timed calls of each kind")
      ->transform(Whole(1U, kMostCalls))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("-w,--warmup_iters", options.warmups, "Calls before those")
      ->transform(Whole(0U, kMostCalls))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("-c,--check", options.check, "Compare results: 1 or nothing, yes; 0, no")
      ->expected(0, 1)
      ->type_name("0|1");
  command->add_option("-o,--op", options.reduction, "sum, prod, max, min, avg, all")
      ->capture_default_str()
      ->type_name("OP");
  command->add_option("-d,--datatype", options.type, "float, half, bfloat16, double, int32, ..., all")
      ->capture_default_str()
      ->type_name("TYPE");
  command->add_option("-r,--root", options.root, "Rank, or all")->capture_default_str()->type_name("RANK");
  command->add_option("-N,--run_cycles", options.cycles, "Do it all so many times")
      ->transform(Whole(1U, 1'000'000U))
      ->each([&options](const std::string&) { options.has_cycles = true; })
      ->capture_default_str()
      ->type_name("N");
  command->add_option("-T,--timeout", options.call_timeout_s, "Of one call (default: 300)")
      ->check(Real(0.001, 1e6))
      ->type_name("S");
  command->add_option("-J,--output_file", options.json_path, "Rank 0 also writes JSON there (-: as --json)")
      ->check(objection_to_empty)
      ->type_name("FILE");
  command->add_option("-t,--nthreads", options.threads, "Ignored, for nccl-tests' sake")
      ->transform(Whole(0, kMostCalls))
      ->type_name("N");
  command->add_option("-g,--ngpus", options.gpus, "Ignored likewise")->transform(Whole(0, kMostCalls))->type_name("N");
  command->add_option("-m,--agg_iters", options.aggregated, "Ignored likewise")
      ->transform(Whole(0, kMostCalls))
      ->type_name("N");
  command->add_option("-I", options.init_ids, "Ignored likewise")->expected(0, 1)->type_name("N");
}

}  // namespace

void define_bench(CLI::App& app, Request& request) {
  BenchOptions& options = request.bench;
  CLI::App* command = app.add_subcommand("bench", "Measure collectives, as nccl-tests does, and byte streams");
  command
      ->add_option(
          "collective", options.collective,
          "all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, gather, scatter, send_recv, barrier, "
          "stream")
      ->required()
      ->type_name("COLLECTIVE");
  add_nccl_options(command, options);
  command->add_option("--algorithm", options.algorithm, "By this one (default: the fastest)")->type_name("NAME");
  CLI::Option* fast = command->add_flag("--fast", options.is_fast, "Let sums be taken in any order");
  command->add_flag("--in-order", options.is_in_order, "Sums in the order of ranks, the same bits everywhere (default)")
      ->excludes(fast);
  command->add_option("--verbs,--library", options.verbs, "Verbs library: auto, system, soft, or a path")
      ->type_name("LIB");
  command->add_option("--cluster,--name", options.cluster, "Cluster to run on (default: the only one)")
      ->type_name("NAME");
  command->add_option("--block-ms", options.block_ms, "Of stream: length of a block")
      ->transform(Whole(1U, 60'000U))
      ->capture_default_str()
      ->type_name("MS");
  command->add_flag("--json", options.is_json, "Print JSON");
  add_thresholds(command, options.fail_if);
  add_rank(command, options);
  command->footer(
      "Runs itself on all nodes of the cluster; started by a launcher that says which rank it is, it is that rank.\n"
      "A time is the mean, over calls, of the slowest rank's. After timing, one more call is compared with what it "
      "must\n"
      "give. Exit code 1: something was wrong.\n"
      "stream: byte streams beside UNIX sockets and TCP, between two processes of this machine, in turns: -N blocks "
      "of\n"
      "each (7), messages of -b bytes to and fro (64). It takes --verbs, -J, --json and --fail-if as well, "
      "and no other option.\n\n"
      "Examples:\n"
      "  ringbolt bench all_reduce -b 8 -e 64M -f 2\n"
      "  ringbolt bench all_gather -d half -n 100 -J all_gather.json\n"
      "  ringbolt bench all_reduce --fast --algorithm two_way_ring\n"
      "  mpirun -n 4 ringbolt bench barrier\n"
      "  ringbolt bench stream -N 3\n");
  command->callback([&request, command] {
    for (const CLI::Option* one : command->get_options()) {
      if (one->nonpositional() && one->count() > 0) {
        request.bench.given.push_back(one->get_name());
      }
    }
    request.action = [&request] { return bench_run(request.bench); };
  });
}

}  // namespace ringbolt::tools::bench
