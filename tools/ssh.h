#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "child_process.h"
#include "cluster/model.h"

namespace ringbolt::tools {

/// Whether ssh's side of a program is a terminal.
enum class Terminal { none, wanted };

/// Runs `words` of the `ringbolt` command below `prefix` on `host`, by ssh (the words of $RINGBOLT_SSH, default "ssh"),
/// which asks no questions and gives up on a host that does not answer. Throws UsageError if there is no ssh.
/// $RINGBOLT_SSH is parted at blanks: no word of it can hold one, whatever the quotes.
Launch ssh_launch(const std::string& host, const std::string& prefix, const std::vector<std::string>& words,
                  Terminal terminal = Terminal::none);

/// A shell on `host` that carries out its input. Asks no questions. Throws UsageError if there is no ssh.
Launch shell_launch(const std::string& host);

/// A shell of root's on `host`, by sudo if ssh logs in as somebody else, that carries out its input and stops at the
/// first command that fails. Asks no questions. Throws UsageError if there is no ssh.
Launch root_shell_launch(const std::string& host);

/// ssh_launch() on the machine of node `node`, where the command then finds the node's state.
Launch node_launch(const cluster::Cluster& model, uint32_t node, std::vector<std::string> words,
                   Terminal terminal = Terminal::none);

/// How ssh reaches a node: its host, or else its name. Thread-safe.
std::string host_of(const cluster::Node& node);

/// Runs all launches at the same time, launch i with input `inputs[i]` (none: no input). Each blocks for at most
/// `timeout_s`. A launch that can't be started ends with exit code 127 and the reason as its error output.
/// One thread a launch, all of which have ended when it returns. Throws std::system_error where none is to be had.
std::vector<Captured> run_all(const std::vector<Launch>& launches, const std::vector<std::string>& inputs,
                              double timeout_s);

/// For run_all(): beyond ssh's own patience with a host that is not there.
inline constexpr double kSshPatienceS = 40;
/// ssh's own exit code for its failures.
inline constexpr int kSshFailed = 255;

/// Why a remote command failed, in words that name the host and what to do; "" if it did not.
std::string remote_problem(const std::string& host, const std::string& prefix, const Captured& result);

/// Throws UsageError, a line for each problem.
[[noreturn]] void refuse_with(const std::vector<std::string>& problems);

}  // namespace ringbolt::tools
