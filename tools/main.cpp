#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "bench/command_line.h"
#include "check/command_line.h"
#include "command_line.h"
#include "commands.h"
#include "failure.h"
#include "host_node.h"
#include "perf/command_line.h"
#include "plan/command_line.h"
#include "verify/command_line.h"
#include "version.h"

namespace ringbolt::tools {
namespace {

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

/// `answer`, unless what was said has not arrived: a full disk must not pass for success.
int told(const std::string& name, int answer) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
    return answer;
  }
  if (errno == EPIPE) {  // whoever has read it has had enough
    return 128 + SIGPIPE;
  }
  // Of an earlier write the reason is not known any more.
  const std::string reason = errno == 0 ? "" : fmt::format(": {}", base::reason_of(errno));
  fmt::print(stderr, "{}: standard output can't be written{}; make room there\n", name, reason);
  return kWrongUsage;
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
      "  ringbolt map\n"
      "  ringbolt verify soak --nodes 0,1 -D 60\n"
      "  ringbolt check\n"
      "  ringbolt bench all_reduce\n"
      "  ringbolt cut 1-2\n"
      "  ringbolt down\n"
      "\n`ringbolt COMMAND --help` says more.\n");
  Request request;
  define_cluster_commands(app, request);
  define_program_commands(app, request);
  perf::define_perf(app, request.perf, [&request] { request.action = [&request] { return perf_run(request.perf); }; });
  plan::define_plan(app, request.plan, [&request] { request.action = [&request] { return plan_run(request.plan); }; });
  verify::define_verify(app, request.verify,
                        [&request] { request.action = [&request] { return verify_run(request.verify); }; });
  check::define_check(app, request.check,
                      [&request] { request.action = [&request] { return check_run(request.check); }; });
  bench::define_bench(app, request.bench,
                      [&request] { request.action = [&request] { return bench_run(request.bench); }; });
  request.check.words.assign(argv + 1, dashes);
  request.bench.words = request.check.words;
  try {
    app.parse(static_cast<int>(dashes - argv), argv);
  } catch (const CLI::ParseError& error) {
    if (app.get_subcommands().empty() && argc > 1 && argv[1][0] != '-') {
      fmt::print(stderr, "ringbolt: \"{}\" is no command; `ringbolt --help` lists them\n", argv[1]);
      return kWrongUsage;
    }
    return app.exit(error) == 0 ? told(command_name(app), kOk) : kWrongUsage;
  }
  try {
    return told(command_name(app), act(app, request, command, has_command));
  } catch (const std::exception& error) {
    std::fflush(stdout);
    fmt::print(stderr, "{}: {}\n", command_name(app), error.what());
    return dynamic_cast<const FoundProblem*>(&error) != nullptr ? kFoundProblem : kWrongUsage;
  }
}

}  // namespace
}  // namespace ringbolt::tools

int main(int argc, char** argv) { return ringbolt::tools::main_inside(argc, argv); }
