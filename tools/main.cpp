#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/say.h"
#include "base/variables.h"
#include "cli/formatter.h"
#include "cli/help.h"
#include "cli/words.h"
#include "command_line.h"
#include "commands.h"
#include "failure.h"
#include "fault/plan_text.h"
#include "host_node.h"
#include "profile/catalogue.h"
#include "standard_descriptors.h"
#include "version.h"

namespace ringbolt::tools {
namespace {

/// Of a command that somebody typed: our own processes have an environment that was looked at.
void say_odd_environment(const CLI::App& app, const Request& request) {
  const bool is_own = is_hidden(chosen_command(app)) || !request.host.node.empty() || request.check.is_rank ||
                      request.bench.is_rank || request.nccl.is_rank || !request.perf.end.empty() ||
                      !request.verify.end.empty();
  if (is_own) {
    return;
  }
  base::say_odd_variables();
  if (const char* like = std::getenv("RINGBOLT_LIKE"); like != nullptr && *like != '\0') {
    if (const auto profile = profile::parse_profile(like); !profile) {
      base::say(fmt::format("ringbolt: RINGBOLT_LIKE={}: {}\n", like, profile.error().problem));
    }
  }
  if (const char* faults = std::getenv("RINGBOLT_FAULTS"); faults != nullptr && *faults != '/') {
    if (const auto plan = fault::parse_plan(faults); !plan) {
      base::say(fmt::format("ringbolt: RINGBOLT_FAULTS: {}\n", plan.error().text()));
    }
  }
  if (const char* log = std::getenv("RINGBOLT_LOG"); log != nullptr && !base::takes("RINGBOLT_LOG", log)) {
    ::unsetenv("RINGBOLT_LOG");  // it was said, and programs that are started would say it again
  }
}

int act(const CLI::App& app, Request& request, std::vector<std::string> command, bool has_command) {
  if (request.takes_command && command.empty()) {
    throw UsageError("say what to run, after --; for example: " + path_of(chosen_command(app)) +
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
  // What a descriptor that we opened in place of a closed one is good for: an earlier write has failed with EBADF.
  const int mode = ::fcntl(STDOUT_FILENO, F_GETFL);
  if (errno == EBADF || mode < 0 || (mode & O_ACCMODE) == O_RDONLY) {
    base::say(name + ": standard output is closed; open it, or throw it away with >/dev/null\n");
    return kWrongUsage;
  }
  // Of an earlier write the reason is not known any more.
  const std::string reason = errno == 0 ? "" : fmt::format(": {}", base::reason_of(errno));
  base::say(fmt::format("{}: standard output can't be written{}; make room there\n", name, reason));
  return kWrongUsage;
}

int main_inside(int argc, char** argv) {
  // What follows "--" is somebody else's command line: CLI11 does not get to see it.
  char** const end = argv + argc;
  char** const dashes = std::find_if(argv, end, [](const char* word) { return std::string(word) == "--"; });
  const bool has_command = dashes != end;
  const std::vector<std::string> command(has_command ? dashes + 1 : end, end);

  const std::vector<std::string> words(argv + std::min(argc, 1), dashes);

  CLI::App app("RDMA on machines without RDMA hardware, and on emulated clusters of them.", "ringbolt");
  app.set_version_flag("--version", std::string("ringbolt ") + kVersion);
  app.require_subcommand(1);
  app.formatter(std::make_shared<HelpFormatter>());
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
      "\n`ringbolt help COMMAND` says more.\n");
  Request request;
  define_cluster_commands(app, request);
  define_program_commands(app, request);
  perf::define_perf(app, request);
  plan::define_plan(app, request);
  verify::define_verify(app, request);
  check::define_check(app, request);
  bench::define_bench(app, request);
  nccl_command::define_nccl(app, request);
  bridge::define_bridge(app, request);
  doctor::define_doctor(app, request);
  define_help(app, request);
  group_commands(app);
  request.check.words = request.bench.words = request.nccl.words = words;
  request.perf.words = request.verify.words = words;
  try {
    app.parse(static_cast<int>(dashes - argv), argv);
  } catch (const CLI::ParseError& error) {
    const std::string name = path_of(chosen_command(app));
    if (error.get_exit_code() == 0) {  // help, or the version
      return told(name, app.exit(error));
    }
    base::say(fmt::format("{}: {}\n", name, usage_words(app, error, words, has_command)));
    return kWrongUsage;
  }
  try {
    say_odd_environment(app, request);
    return told(path_of(chosen_command(app)), act(app, request, command, has_command));
  } catch (const std::exception& error) {
    std::fflush(stdout);
    if (std::ferror(stdout) != 0 && dynamic_cast<const std::system_error*>(&error) != nullptr) {
      return told(path_of(chosen_command(app)), kWrongUsage);  // fmt throws what stdio returns
    }
    base::say(fmt::format("{}: {}\n", path_of(chosen_command(app)), error.what()));
    return dynamic_cast<const FoundProblem*>(&error) != nullptr ? kFoundProblem : kWrongUsage;
  }
}

}  // namespace
}  // namespace ringbolt::tools

int main(int argc, char** argv) {
  ringbolt::tools::open_standard_descriptors();
  return ringbolt::tools::main_inside(argc, argv);
}
