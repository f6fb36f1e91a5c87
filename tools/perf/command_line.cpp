// Beside main.cpp, which would be too long with it: thirty options, most of them perftest's.
#include "command_line.h"

#include <CLI/CLI.hpp>

#include "pair/command_line.h"
#include "validators.h"

namespace ringbolt::tools::perf {
namespace {

void add_what(CLI::App* command, PerfOptions& options) {
  command->add_option("operation", options.operation, "send, write, read or atomic")->required()->type_name("OP");
  pair::add_meeting(command, options);
  command->add_flag("--lat", options.has_latency, "Latency instead of bandwidth");
  command->add_flag("--report-both", options.reports_both, "Latency, then bandwidth");
  pair::add_library(command, options);
  command
      ->add_option("--check", options.check,
                   "What a receiver compares: full, sample, none (default: full; of latency sample)")
      ->type_name("HOW");
  command->add_option("--atomic_type", options.atomic_type, "fetch_add or cmp_swap")->capture_default_str();
}

void add_letters(CLI::App* command, PerfOptions& options) {
  pair::add_device(command, options);
  command->add_option("-s,--size", options.size_bytes, "Bytes of a message (default: 65536; of latency 8; UD: the MTU)")
      ->transform(Whole(1, uint64_t{1} << 30U))
      ->type_name("BYTES");
  command->add_flag("-a,--all", options.is_all_sizes, "All powers of two from 2 to -s, or to 8388608");
  command->add_option("-n,--iters", options.iterations, "Operations for each size (default: 1000), 10 ms at least")
      ->transform(Whole(uint64_t{1}, uint64_t{1} << 40U));
  command->add_option("-D,--duration", options.duration_s, "Instead: seconds for each size")
      ->check(Real(0.01, 86400.0));
  command->add_option("-q,--qp", options.queue_pairs, "Queue pairs, of bandwidth")->transform(Whole(1U, 1024U));
  command->add_flag("-b,--bidirectional", options.is_bidirectional, "Both directions at once, of bandwidth");
  command->add_option("-c,--connection", options.connection, "RC, UC or UD")->capture_default_str();
  pair::add_path(command, options);
  command->add_option("-r,--rx-depth", options.rx_depth, "Receives posted")->transform(Whole(1U, 16384U));
  command->add_option("-Q,--cq-mod", options.signal_every, "Every so many'th send is signalled")
      ->transform(Whole(1U, 16384U));
  command->add_option("-l,--post_list", options.post_list, "Requests posted in one call")->transform(Whole(1U, 1024U));
  command->add_option("-I,--inline_size", options.inline_bytes, "Messages up to so many bytes go inline")
      ->transform(Whole(0, 65536));
  command->add_flag("-e,--events", options.has_events, "Sleep until completions come, instead of polling");
  pair::add_retries(command, options);
  command->add_flag_callback(
      "-F", [] {}, "Accepted for perftest's sake: this tool never looks at processor frequencies");
}

void add_output(CLI::App* command, PerfOptions& options) {
  command->add_flag("--report_gbits", options.is_in_gbits, "Table in Gb/s instead of MiB/s");
  command->add_flag("--histogram", options.has_histogram, "Show how latencies are spread");
  command->add_flag("--json", options.is_json, "Print JSON");
  add_thresholds(command, options.fail_if);
  command->add_option("--html", options.html_path, "Also write a page with plots that needs nothing else")
      ->type_name("FILE");
  pair::add_line_rate(command, options);
  command->add_flag("--require-counters", options.needs_counters, "Fail where the port has no counters");
  command->add_option("--timeout", options.timeout_s, "The most for any one wait")
      ->check(Real(0.1, 86400.0))
      ->capture_default_str()
      ->type_name("S");
}

}  // namespace

void define_perf(CLI::App& app, Request& request) {
  PerfOptions& options = request.perf;
  CLI::App* command = app.add_subcommand("perf", "Measure latency and bandwidth of verbs between two ends");
  add_what(command, options);
  add_letters(command, options);
  add_output(command, options);
  command->footer(
      "Bandwidth counts bytes that the receiver has and has compared, until the sender knows of it. Figures above the\n"
      "line rate are marked INVALID. Exit code 1: one is, or the measurement failed. docs/perf.md says more.\n\n"
      "Examples:\n"
      "  ringbolt perf send --nodes 0,1 --lat\n"
      "  ringbolt perf write --nodes 0,1 -a -s 65536 --html write.html\n"
      "  ringbolt perf read -d rdma_en2                    the server\n"
      "  ringbolt perf read -d rdma_en2 10.0.0.2 -D 5      the client\n");
  command->callback([&request] { request.action = [&request] { return perf_run(request.perf); }; });
}

}  // namespace ringbolt::tools::perf
