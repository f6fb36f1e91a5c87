#include "ssh.h"

#include <cstdlib>
#include <sstream>
#include <thread>

#include <fmt/format.h>

#include "failure.h"
#include "iproute.h"
#include "node_environment.h"
#include "progress_line.h"

namespace ringbolt::tools {
namespace {

/// A shell's exit code for a command that is not there.
constexpr int kNoSuchCommand = 127;

std::vector<std::string> ssh_words() {
  const char* variable = std::getenv("RINGBOLT_SSH");
  std::istringstream text(variable == nullptr ? "" : variable);
  std::vector<std::string> words;
  for (std::string word; text >> word;) {
    words.push_back(word);
  }
  if (words.empty()) {
    words.emplace_back("ssh");
  }
  if (words.front().find('/') == std::string::npos) {
    words.front() = find_program(words.front(), "openssh-client");
  }
  return words;
}

/// Has the login shell of `host` carry out a line.
Launch line_launch(const std::string& host, std::string line, Terminal terminal) {
  Launch launch;
  launch.command = ssh_words();
  for (const char* option : {"BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=5", "ServerAliveCountMax=3"}) {
    launch.command.insert(launch.command.end(), {"-o", option});
  }
  launch.command.emplace_back(terminal == Terminal::wanted ? "-t" : "-T");
  launch.command.insert(launch.command.end(), {"--", host});
  launch.command.push_back(std::move(line));
  launch.environment = merged_environment({});
  return launch;
}

}  // namespace

Launch ssh_launch(const std::string& host, const std::string& prefix, const std::vector<std::string>& words,
                  Terminal terminal) {
  // ssh hands the shell over there one text.
  std::string line = shell_quoted(prefix + "/bin/ringbolt");
  for (const std::string& word : words) {
    line += " " + shell_quoted(word);
  }
  return line_launch(host, std::move(line), terminal);
}

Launch shell_launch(const std::string& host) {
  // The login shell may be of any kind; sh is not.
  return line_launch(host, "exec sh -s", Terminal::none);
}

Launch root_shell_launch(const std::string& host) {
  return line_launch(host, "sh -c 'if [ \"$(id -u)\" = 0 ]; then exec sh -e; fi; exec sudo -n sh -e'", Terminal::none);
}

Launch node_launch(const cluster::Cluster& model, uint32_t node, std::vector<std::string> words, Terminal terminal) {
  words.insert(words.begin(), {"--host-node", fmt::format("{}/{}", model.name, node)});
  return ssh_launch(host_of(model.nodes[node]), model.prefix, words, terminal);
}

std::string host_of(const cluster::Node& node) { return node.host.empty() ? node.name : node.host; }

std::vector<Captured> run_all(const std::vector<Launch>& launches, const std::vector<std::string>& inputs,
                              double timeout_s) {
  const Waiting waiting(fmt::format("waiting for {} host{}", launches.size(), launches.size() == 1 ? "" : "s"));
  std::vector<Captured> results(launches.size());
  std::vector<std::jthread> threads;  // ends before the results do, also where one can't be made
  for (size_t i = 0; i < launches.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        results[i] = run_captured(launches[i], inputs.empty() ? "" : inputs[i], timeout_s);
      } catch (const std::exception& error) {
        results[i].exit_code = kNoSuchCommand;
        results[i].error_output = error.what();
      }
    });
  }
  threads.clear();  // joins
  return results;
}

std::string remote_problem(const std::string& host, const std::string& prefix, const Captured& result) {
  const std::string said = one_line(result.error_output);
  if (result.is_late) {
    return fmt::format("{} did not answer in time; look whether it is well, then try again", host);
  }
  switch (result.exit_code) {
    case 0:
      return "";
    case kSshFailed:
      return fmt::format("ssh can't reach {}: {}; it must work without questions: ssh -o BatchMode=yes {} true", host,
                         said, host);
    case kNoSuchCommand:
      return fmt::format("{} has no {}/bin/ringbolt ({}); install Ringbolt there, or say with --prefix where it is",
                         host, prefix, said);
    default:
      return fmt::format("{}: {}", host, said);
  }
}

void refuse_with(const std::vector<std::string>& problems) {
  throw UsageError(fmt::format("{}", fmt::join(problems, "\n")));
}

}  // namespace ringbolt::tools
