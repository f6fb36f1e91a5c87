// Beside main.cpp, as that of perf.
#include "command_line.h"

#include <CLI/CLI.hpp>

#include "pair/command_line.h"
#include "validators.h"
#include "verify/step.h"

namespace ringbolt::tools::verify {
namespace {

void add_what(CLI::App* command, VerifyOptions& options) {
  command->add_option("mode", options.mode, "stream, write, read, atomic, churn or soak (default: stream)")
      ->type_name("MODE");
  pair::add_meeting(command, options);
  pair::add_library(command, options);
  command
      ->add_option("--order", options.order,
                   "strict or any: the order in which messages may come (default: strict; UD: any)")
      ->type_name("HOW");
  command->add_option("--allow-loss", options.loss_percent, "So much of what goes over UC and UD may be lost")
      ->check(Real(0.0, 100.0))
      ->type_name("PERCENT");
  command->add_option("--min", options.least_bytes, "Bytes of the shortest message (default: 1; UC, UD: 16)")
      ->transform(Whole(0, kMostBytes))
      ->type_name("BYTES");
  command->add_option("--max", options.most_bytes, "Of the longest (default: 65536; of churn 4096; UD: the MTU)")
      ->transform(Whole(1, kMostBytes))
      ->type_name("BYTES");
  command->add_option("--seed", options.seed, "Chooses sizes and data (default: another one each time)")
      ->transform(Whole(uint64_t{0}, uint64_t{0xffffffff}));
}

void add_letters(CLI::App* command, VerifyOptions& options) {
  pair::add_device(command, options);
  command->add_option("-s,--size", options.size_bytes, "--min and --max in one")
      ->transform(Whole(1, kMostBytes))
      ->type_name("BYTES");
  command->add_option("-n,--iters", options.iterations, "Messages or operations of each queue pair; rounds of churn")
      ->transform(Whole(uint64_t{1}, uint64_t{1} << 39U));
  command->add_option("-D,--duration", options.duration_s, "Instead: seconds (default: 2; of soak 60)")
      ->check(Real(0.01, 1e7));
  command->add_option("--hours", options.hours, "Of soak, instead of -D")->check(Real(0.001, 1e4));
  command->add_option("-q,--qp", options.queue_pairs, "Queue pairs (default: 4)")->transform(Whole(1U, 256U));
  command->add_flag("-b,--bidirectional", options.is_bidirectional,
                    "Both directions: streams at once, others in turns");
  command->add_option("-c,--connection", options.connection, "RC, UC or UD (default: RC, where both devices have it)");
  pair::add_path(command, options);
  command->add_option("-r,--rx-depth", options.rx_depth, "Messages that the receiver has room for")
      ->transform(Whole(1U, 16384U));
  pair::add_retries(command, options);
}

void add_output(CLI::App* command, VerifyOptions& options) {
  command->add_flag("--json", options.is_json, "Print JSON");
  command
      ->add_option("--progress", options.progress_s,
                   "A line of progress each so many seconds (default: 10 of soak; on a terminal a line that is written "
                   "again each second; 0: none)")
      ->check(Real(0.0, 86400.0))
      ->type_name("S");
  command->add_option("--stall", options.stall_s, "When nothing moves for so long, it has failed")
      ->check(Real(0.1, 86400.0))
      ->capture_default_str()
      ->type_name("S");
  command->add_option("--timeout", options.timeout_s, "The most for the ends to meet")
      ->check(Real(0.1, 86400.0))
      ->capture_default_str()
      ->type_name("S");
  pair::add_line_rate(command, options);
}

}  // namespace

void define_verify(CLI::App& app, Request& request) {
  VerifyOptions& options = request.verify;
  CLI::App* command =
      app.add_subcommand("verify", "Prove that a verbs library, its device and a cable carry data right");
  add_what(command, options);
  add_letters(command, options);
  add_output(command, options);
  command->footer(
      "stream sends stamped messages one way, write and read reach into the other's memory, atomic keeps accounts,\n"
      "churn makes and destroys queue pairs, soak does in turns all that the devices can. Every byte is compared.\n"
      "Exit codes: 0 all verified, 1 a failure was found, 2 wrong usage, or refused by the device. docs/verify.md says "
      "more.\n\n"
      "Examples:\n"
      "  ringbolt verify --nodes 0,1\n"
      "  ringbolt verify soak --nodes 0,1 -D 60\n"
      "  ringbolt verify write -d rdma_en2                    the server\n"
      "  ringbolt verify write -d rdma_en2 10.0.0.2 -D 5      the client\n"
      "  ringbolt verify soak --hours 12 --verbs system 10.0.0.2\n");
  command->callback([&request] { request.action = [&request] { return verify_run(request.verify); }; });
}

}  // namespace ringbolt::tools::verify
